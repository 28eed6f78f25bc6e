// SPDX-License-Identifier: MIT
/* Texts of page.html, flame.css and flame.js, made into C by the build. */
#ifndef OUTPUT_HTML_PAGE_H
#define OUTPUT_HTML_PAGE_H

extern const char html_page[];
extern const char flame_style[];
extern const char flame_script[];

#endif
