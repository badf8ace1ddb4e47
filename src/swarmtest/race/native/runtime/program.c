/* Attaching to the shared memory, and the threads: their names, waits and held locks. */

#include "threads.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct memory *memory;
__thread struct thread *self __attribute__((tls_model("initial-exec")));
int alone = 1;

static __thread struct variable *object_at_hand __attribute__((tls_model("initial-exec")));
static pthread_key_t at_thread_end;
static uint32_t living = 1;

/* On some machines glibc has two versions of the condition functions; ask for the newer one. */
void *next_function(const char *name) {
    void *found = strncmp(name, "pthread_cond", 12) ? NULL : dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    if (!found) found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "swarmtest: the C library has no %s\n", name);
        _exit(127);
    }
    return found;
}

int attached(void) { return memory != NULL; }

static struct memory *mapped(void) {
    const char *path = getenv("SWARMTEST_THREADS");
    int flags = MAP_SHARED, file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (path && (file < 0 || lseek(file, 0, SEEK_END) != (off_t)sizeof(struct memory))) return NULL;
    if (!path) flags = MAP_PRIVATE | MAP_ANONYMOUS; /* run by hand: noise without a report */
    void *made = mmap(NULL, sizeof(struct memory), PROT_READ | PROT_WRITE, flags, file, 0);
    if (file >= 0) close(file);
    return made == MAP_FAILED ? NULL : made;
}

static void one_less(struct thread *thread) {
    __atomic_store_n(&thread->state, SLOT_ENDED, __ATOMIC_RELEASE);
    if (__atomic_sub_fetch(&living, 1, __ATOMIC_ACQ_REL) == 1) alone = 1;
}

static void thread_ended(void *thread) {
    stop_running_alone();
    self = NULL; /* later destructors are not observed */
    one_less(thread);
}

void thread_failed(struct thread *thread) { one_less(thread); }

static void own_stack(struct thread *thread) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes)) return;
    if (!pthread_attr_getstack(&attributes, &low, &size)) {
        thread->stack_low = (uint64_t)low;
        thread->stack_high = (uint64_t)low + size;
    }
    pthread_attr_destroy(&attributes);
}

void thread_begins(struct thread *thread) {
    self = thread;
    thread->process = (uint32_t)getpid();
    thread->number = (uint32_t)syscall(SYS_gettid);
    thread->handle = (uint64_t)pthread_self();
    own_stack(thread);
    __atomic_store_n(&thread->state, SLOT_RUNS, __ATOMIC_RELEASE);
    pthread_setspecific(at_thread_end, thread);
}

/* Return the slot of a new thread. "main.2" is the second thread that main creates. */
struct thread *new_thread(struct thread *parent) {
    uint32_t number = __atomic_fetch_add(&memory->header.threads, 1, __ATOMIC_ACQ_REL);
    if (number >= THREADS) {
        __atomic_fetch_or(&memory->header.no_room, NO_ROOM_THREADS, __ATOMIC_RELAXED);
        number = THREADS - 1;
    }
    struct thread *thread = &memory->threads[number];
    if (parent) {
        snprintf(thread->name, sizeof thread->name, "%.50s.%u", parent->name, ++parent->children);
        __atomic_add_fetch(&living, 1, __ATOMIC_ACQ_REL);
        alone = 0;
    }
    __atomic_store_n(&thread->state, SLOT_NEW, __ATOMIC_RELEASE);
    return thread;
}

/* Return the slot + 1 of a thread that was not joined, since handles are reused. */
uint32_t slot_of(uint64_t handle) {
    uint32_t count = memory->header.threads < THREADS ? memory->header.threads : THREADS;
    for (uint32_t i = count; i--;) {
        struct thread *thread = &memory->threads[i];
        if (thread->handle == handle && !thread->joined && thread->process == self->process)
            return i + 1;
    }
    return 0;
}

void thread_joined(uint64_t handle) {
    uint32_t slot = slot_of(handle);
    if (slot) memory->threads[slot - 1].joined = 1;
}

struct thread *current(void) { return self; }

void begin_process(void) {
    uint32_t process = __atomic_add_fetch(&memory->header.processes, 1, __ATOMIC_ACQ_REL);
    struct thread *thread = new_thread(NULL);
    if (process == 1)
        strcpy(thread->name, "main");
    else
        snprintf(thread->name, sizeof thread->name, "process %u", process);
    thread_begins(thread);
}

static void in_forked_child(void) {
    if (!memory) return;
    living = 1;
    alone = 1;
    forget_noise();
    forget_last_site();
    begin_process();
}

__attribute__((constructor)) void attach(void) {
    if (memory || !getenv("SWARMTEST_NOISE")) return;
    struct memory *found = mapped();
    if (!found) return;
    pthread_key_create(&at_thread_end, thread_ended);
    read_settings();
    found->header.layout = LAYOUT;
    memory = found;
    begin_process();
    pthread_atfork(NULL, NULL, in_forked_child);
}

void wait_begins(enum operation operation, uint32_t site, const void *object, int ends) {
    stop_running_alone();
    self->wait_object = (uint64_t)object;
    self->wait_site = site;
    self->wait_ends = (uint32_t)ends;
    __atomic_store_n(&self->wait_operation, operation, __ATOMIC_RELEASE);
}

void wait_ends(void) { __atomic_store_n(&self->wait_operation, 0, __ATOMIC_RELEASE); }

void hold(const void *object, uint32_t site) {
    uint32_t count = self->held_count;
    if (count < HELD) {
        self->held[count].object = (uint64_t)object;
        self->held[count].site = site;
        __atomic_store_n(&self->held_count, count + 1, __ATOMIC_RELEASE);
    }
}

/* Forget a lock; return the site at which this thread acquired it, or 0 if it did not. */
uint32_t let_go(const void *object) {
    uint32_t count = self->held_count; /* may be wrong: threads without a slot share one */
    if (count > HELD) count = HELD;
    for (uint32_t i = count; i--;) {
        if (self->held[i].object != (uint64_t)object) continue;
        uint32_t site = self->held[i].site;
        for (; i + 1 < count; i++) self->held[i] = self->held[i + 1];
        __atomic_store_n(&self->held_count, count - 1, __ATOMIC_RELEASE);
        return site;
    }
    return 0;
}

void mark_holders(const void *object, uint32_t flag) {
    uint32_t count = memory->header.threads < THREADS ? memory->header.threads : THREADS;
    for (uint32_t i = 0; i < count; i++) {
        struct thread *thread = &memory->threads[i];
        uint32_t held = __atomic_load_n(&thread->held_count, __ATOMIC_ACQUIRE);
        if (thread->process != self->process) continue;
        for (uint32_t j = 0; j < held && j < HELD; j++)
            if (thread->held[j].object == (uint64_t)object) mark(thread->held[j].site, flag);
    }
}

uint32_t event(void *caller, enum operation operation, const void *object) {
    uint32_t site = site_of(caller, operation);
    mark(site, VISITED);
    if (!alone) record_pair(site);
    object_at_hand = object && !alone ? touch((uint64_t)object, site, 1) : NULL;
    noise(site, object_at_hand);
    return site;
}

void after(uint32_t site) { noise(site, object_at_hand); }
