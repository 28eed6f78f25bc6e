// SPDX-License-Identifier: MIT
/*
 * Own file: creates a file in a directory that others may write to, such as
 * /tmp, so that it is ours and nothing else. Never in the signal handler.
 */
#ifndef PERFMAP_OWN_FILE_H
#define PERFMAP_OWN_FILE_H

/*
 * Creates path exclusively, regular, close-on-exec, never through a link, and
 * readable by everybody whatever the umask. What lies there already is unlinked
 * and not opened; where that is not allowed (it is another user's and the
 * directory is sticky) opening fails. Returns a descriptor to read and write,
 * or a negative errno.
 */
int own_file_create(const char *path);

#endif
