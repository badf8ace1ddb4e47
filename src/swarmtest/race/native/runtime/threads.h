/* The declarations shared by the parts of the preloaded library. The layout of the memory must
   match library.py.

   The library intercepts a program's pthread functions: it delays threads (noise), and records
   what it sees in memory shared with swarmtest. That memory outlives the program, so a crash or
   a kill loses nothing. Without swarmtest's environment variables every call is passed straight
   through. */

#ifndef SWARMTEST_THREADS_H
#define SWARMTEST_THREADS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORTED __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* ---- the shared memory ---- */

enum {
    LAYOUT = 1,
    HEADER_SIZE = 4096,
    MODULES = 256,
    PATH_LENGTH = 496,
    THREADS = 4096,
    NAME_LENGTH = 64,
    HELD = 16,
    SITES = 1 << 16,
    PAIRS = 1 << 18
};

enum { SLOT_FREE, SLOT_NEW, SLOT_RUNS, SLOT_ENDED };

/* The operations of sites; library.py lists their names in this order. */
enum operation {
    LOCK = 1, TRYLOCK, TIMEDLOCK, UNLOCK,
    READ_LOCK, WRITE_LOCK, READ_WRITE_UNLOCK,
    SPIN_LOCK, SPIN_UNLOCK,
    CONDITION_WAIT, CONDITION_TIMEDWAIT, SIGNAL, BROADCAST,
    SEMAPHORE_WAIT, SEMAPHORE_POST,
    BARRIER, CREATE, JOIN, SLEEP, START,
    READ, WRITE, ATOMIC
};

enum site_flag {
    VISITED = 1, BLOCKED = 2, BLOCKING = 4, SHARED = 8, PREDECESSOR = 16,
    KNOWN_SHARED = 32, KNOWN_PREDECESSOR = 64 /* set by swarmtest, from earlier runs */
};

enum no_room { NO_ROOM_MODULES = 1, NO_ROOM_THREADS = 2, NO_ROOM_SITES = 4, NO_ROOM_PAIRS = 8 };

struct module {
    uint32_t state;
    uint32_t reserved[3];
    char path[PATH_LENGTH];
};

struct held {
    uint64_t object;
    uint32_t site;
    uint32_t reserved;
};

struct thread {
    uint32_t state;
    uint32_t process; /* its pid */
    uint32_t number;  /* its tid */
    uint32_t children;
    uint64_t handle; /* pthread_t */
    uint64_t random;
    uint64_t probes;
    uint64_t noises;
    uint64_t digest; /* a hash of its decisions */
    uint64_t stack_low, stack_high;
    uint64_t wait_object;
    uint32_t wait_operation; /* 0 if it does not wait */
    uint32_t wait_site;
    uint32_t wait_ends; /* the wait has a time limit */
    uint32_t wait_thread; /* the thread it joins: slot + 1 */
    uint32_t held_count;
    uint32_t joined;
    struct held held[HELD];
    char name[NAME_LENGTH];
};

struct site {
    uint64_t key; /* module + 1 in the upper 16 bits, then the link-time address */
    uint32_t operation;
    uint32_t flags;
};

struct header {
    uint32_t layout;
    uint32_t processes;
    uint32_t threads;
    uint32_t no_room;
    uint32_t accesses; /* the program calls the hooks of -fsanitize=thread */
    uint32_t pairs;    /* the number in pair_list */
};

struct memory {
    union {
        struct header header;
        char room[HEADER_SIZE];
    };
    struct module modules[MODULES];
    struct thread threads[THREADS];
    struct site sites[SITES];
    uint64_t pairs[PAIRS];     /* a hash table */
    uint64_t pair_list[PAIRS]; /* in the order of first occurrence */
};

/* ---- a variable or synchronisation object of this process ---- */

struct variable {
    uint64_t address;
    uint32_t first_site;
    uint32_t other_site;
    uint16_t maker; /* slot + 1 */
    uint16_t other;
    uint8_t several;
    uint8_t written;
};

extern HIDDEN struct memory *memory;
extern HIDDEN __thread struct thread *self;
extern HIDDEN int alone; /* the process has one thread */

HIDDEN int attached(void);
HIDDEN void attach(void);

HIDDEN uint32_t site_of(void *caller, enum operation operation);
HIDDEN void mark(uint32_t site, uint32_t flag);
HIDDEN void record_pair(uint32_t site);
HIDDEN void forget_last_site(void);
HIDDEN int in_module_data(uint64_t address);

HIDDEN struct variable *touch(uint64_t address, uint32_t site, int write);
HIDDEN void forget_variables(uint64_t low, uint64_t high);

HIDDEN struct thread *new_thread(struct thread *parent);
HIDDEN struct thread *current(void);
HIDDEN void begin_process(void);
HIDDEN void thread_begins(struct thread *thread);
HIDDEN void thread_failed(struct thread *thread);
HIDDEN void thread_joined(uint64_t handle);
HIDDEN uint32_t slot_of(uint64_t handle);
HIDDEN void wait_begins(enum operation operation, uint32_t site, const void *object, int ends);
HIDDEN void wait_ends(void);
HIDDEN void hold(const void *object, uint32_t site);
HIDDEN uint32_t let_go(const void *object);
HIDDEN void mark_holders(const void *object, uint32_t flag);

HIDDEN void read_settings(void);
HIDDEN void forget_noise(void);
HIDDEN void noise(uint32_t site, const struct variable *variable);
HIDDEN void stop_running_alone(void);
HIDDEN int tampers(void);
HIDDEN uint64_t shortened(uint64_t nanoseconds);
HIDDEN uint64_t mixed(uint64_t key);
HIDDEN uint64_t now(void);

HIDDEN void *next_function(const char *name);

/* Record an event of the program, and perhaps delay the thread. */
HIDDEN uint32_t event(void *caller, enum operation operation, const void *object);
HIDDEN void after(uint32_t site);

#define NEXT(name)                                                                      \
    ({                                                                                  \
        static __typeof__(&name) found;                                                 \
        if (!found) found = (__typeof__(&name))next_function(#name);                    \
        found;                                                                          \
    })

#endif
