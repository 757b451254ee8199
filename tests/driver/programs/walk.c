/* Opens a folder below / by one name after another, each in the folder before it, as libudev does; prints the names that were found. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **names)
{
    int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 1; i < count && at >= 0; i++) {
        int folder = at;
        at = openat(folder, names[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
        close(folder);
        if (at >= 0)
            puts(names[i]);
    }
    return at < 0;
}
