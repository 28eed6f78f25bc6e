// SPDX-License-Identifier: MIT
/* The text of page.html; html_page.c is made of it when the tools are built. */
#ifndef OUTPUT_HTML_PAGE_H
#define OUTPUT_HTML_PAGE_H

extern const char html_page[];

#endif
