// SPDX-License-Identifier: MIT
/* Own file. Never in the signal handler: it makes system calls. */
#include "perfmap/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_FILE_MODE   0644
#define CREATE_ATTEMPTS 8

int own_file_create(const char *path)
{
	for (int attempt = 0; attempt < CREATE_ATTEMPTS; attempt++) {
		int fd =
			open(path,
		             O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		             OWN_FILE_MODE);

		if (fd >= 0) {
			/* The umask may keep other users from reading. */
			(void)fchmod(fd, OWN_FILE_MODE);
			return fd;
		}
		if (errno != EEXIST && errno != EINTR)
			return -errno;
		if (errno == EEXIST && unlink(path) != 0 && errno != ENOENT)
			return -errno;
	}
	return -EEXIST;
}
