/* The hooks that -fsanitize=thread inserts before every memory access; they replace its own
   runtime. An access is an event, but only while the program has several threads: a single
   thread cannot race. */

#include "threads.h"
#include <stddef.h>
#include <string.h>
#include <malloc.h>

enum { LONGEST_FORGOTTEN = 4096 };

static void access_at(const void *address, void *caller, enum operation operation) {
    if (!self) return;
    if (alone) {
        if (!memory->header.accesses) memory->header.accesses = 1;
        return;
    }
    uint32_t site = site_of(caller, operation);
    mark(site, VISITED);
    const struct variable *variable = touch((uint64_t)address, site, operation != READ);
    if (variable && variable->several) record_pair(site);
    noise(site, variable);
}

#define HOOK(name, operation)                                                           \
    EXPORTED void __tsan_##name(void *address) { access_at(address, CALLER, operation); }

#define HOOKS(size)                                                                     \
    HOOK(read##size, READ)                                                              \
    HOOK(write##size, WRITE)                                                            \
    HOOK(read_write##size, WRITE)                                                       \
    HOOK(volatile_read##size, READ)                                                     \
    HOOK(volatile_write##size, WRITE)                                                   \
    HOOK(unaligned_read##size, READ)                                                    \
    HOOK(unaligned_write##size, WRITE)                                                  \
    HOOK(unaligned_read_write##size, WRITE)                                             \
    HOOK(unaligned_volatile_read##size, READ)                                           \
    HOOK(unaligned_volatile_write##size, WRITE)                                         \
    EXPORTED void __tsan_read##size##_pc(void *address, void *caller) {                 \
        access_at(address, caller, READ);                                               \
    }                                                                                   \
    EXPORTED void __tsan_write##size##_pc(void *address, void *caller) {                \
        access_at(address, caller, WRITE);                                              \
    }

HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
HOOK(vptr_read, READ)

EXPORTED void __tsan_vptr_update(void **address, void *value) {
    if (*address != value) access_at(address, CALLER, WRITE);
}

EXPORTED void __tsan_read_range(void *address, unsigned long size) {
    if (size) access_at(address, CALLER, READ);
}

EXPORTED void __tsan_write_range(void *address, unsigned long size) {
    if (size) access_at(address, CALLER, WRITE);
}

EXPORTED void *__tsan_memcpy(void *to, const void *from, size_t size) {
    if (size) access_at(from, CALLER, READ), access_at(to, CALLER, WRITE);
    return memcpy(to, from, size);
}

EXPORTED void *__tsan_memmove(void *to, const void *from, size_t size) {
    if (size) access_at(from, CALLER, READ), access_at(to, CALLER, WRITE);
    return memmove(to, from, size);
}

EXPORTED void *__tsan_memset(void *to, int value, size_t size) {
    if (size) access_at(to, CALLER, WRITE);
    return memset(to, value, size);
}

EXPORTED void __tsan_init(void) {
    attach();
    if (memory) memory->header.accesses = 1;
}

/* ThreadSanitizer's other hooks report what it cannot see; none of that is needed here. */
EXPORTED void __tsan_func_entry(void *caller) { (void)caller; }
EXPORTED void __tsan_func_exit(void) {}
EXPORTED void __tsan_ignore_thread_begin(void) {}
EXPORTED void __tsan_ignore_thread_end(void) {}
EXPORTED void __tsan_acquire(void *address) { (void)address; }
EXPORTED void __tsan_release(void *address) { (void)address; }
EXPORTED void __tsan_mutex_create(void *mutex, unsigned flags) { (void)mutex, (void)flags; }
EXPORTED void __tsan_mutex_destroy(void *mutex, unsigned flags) { (void)mutex, (void)flags; }
EXPORTED void __tsan_mutex_pre_lock(void *mutex, unsigned flags) { (void)mutex, (void)flags; }
EXPORTED void __tsan_mutex_post_lock(void *mutex, unsigned flags, int depth) {
    (void)mutex, (void)flags, (void)depth;
}
EXPORTED int __tsan_mutex_pre_unlock(void *mutex, unsigned flags) {
    (void)mutex, (void)flags;
    return 1;
}
EXPORTED void __tsan_mutex_post_unlock(void *mutex, unsigned flags) { (void)mutex, (void)flags; }
EXPORTED void __tsan_mutex_pre_signal(void *mutex, unsigned flags) { (void)mutex, (void)flags; }
EXPORTED void __tsan_mutex_post_signal(void *mutex, unsigned flags) { (void)mutex, (void)flags; }
EXPORTED void __tsan_mutex_pre_divert(void *mutex, unsigned flags) { (void)mutex, (void)flags; }
EXPORTED void __tsan_mutex_post_divert(void *mutex, unsigned flags) { (void)mutex, (void)flags; }
EXPORTED void *__tsan_get_current_fiber(void) { return NULL; }
EXPORTED void *__tsan_create_fiber(unsigned flags) {
    static char fiber;
    (void)flags;
    return &fiber;
}
EXPORTED void __tsan_destroy_fiber(void *fiber) { (void)fiber; }
EXPORTED void __tsan_switch_to_fiber(void *fiber, unsigned flags) { (void)fiber, (void)flags; }
EXPORTED void __tsan_set_fiber_name(void *fiber, const char *name) { (void)fiber, (void)name; }

#define ANNOTATION(name)                                                                \
    EXPORTED void Annotate##name(const char *file, int line, const volatile void *object) { \
        (void)file, (void)line, (void)object;                                           \
    }
ANNOTATION(HappensBefore)
ANNOTATION(HappensAfter)
ANNOTATION(RWLockCreate)
ANNOTATION(RWLockDestroy)

EXPORTED void AnnotateIgnoreReadsBegin(const char *file, int line) { (void)file, (void)line; }
EXPORTED void AnnotateIgnoreReadsEnd(const char *file, int line) { (void)file, (void)line; }
EXPORTED void AnnotateIgnoreWritesBegin(const char *file, int line) { (void)file, (void)line; }
EXPORTED void AnnotateIgnoreWritesEnd(const char *file, int line) { (void)file, (void)line; }

/* Memory that is freed and then allocated by another thread is not shared between the two. */
static void forget_block(void *block) {
    if (!self || alone || !block) return;
    size_t size = malloc_usable_size(block);
    if (size > LONGEST_FORGOTTEN) size = LONGEST_FORGOTTEN;
    forget_variables((uint64_t)block, (uint64_t)block + size);
}

typedef void (*free_function)(void *);

EXPORTED void free(void *block) {
    static free_function next;
    static int looking;
    free_function found = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
    if (!found) {
        if (__atomic_exchange_n(&looking, 1, __ATOMIC_ACQ_REL)) return; /* the lookup calls free */
        found = (free_function)next_function("free");
        __atomic_store_n(&next, found, __ATOMIC_RELEASE);
    }
    forget_block(block);
    found(block);
}
