/* A main function for a libFuzzer harness, in place of libFuzzer's own.

   Files on the command line are run one by one. Without any, the input is standard input, and a
   persistent process of swarmtest runs one input after another. */

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *count, char ***words);
__attribute__((visibility("hidden"))) int swarmtest_next(void);

/* The copy has exactly the size of the input, so that a sanitizer sees a read beyond it. */
static void swarmtest_run_input(int file) {
    size_t size = 0, room = 1 << 16;
    uint8_t *input = malloc(room);
    for (ssize_t count; input && (count = read(file, input + size, room - size)) > 0;) {
        size += (size_t)count;
        if (size < room) continue;
        uint8_t *more = realloc(input, room *= 2);
        if (!more) break;
        input = more;
    }
    uint8_t *exact = malloc(size ? size : 1);
    if (!input || !exact) _exit(77);
    memcpy(exact, input, size);
    free(input);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int count, char **words) {
    if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&count, &words);
    int files = 0;
    for (int i = 1; i < count; i++) {
        int file = words[i][0] == '-' ? -1 : open(words[i], O_RDONLY);
        if (file < 0) continue;
        swarmtest_run_input(file);
        close(file);
        files++;
    }
    if (files) return 0;
    while (swarmtest_next()) swarmtest_run_input(0);
    return 0;
}
