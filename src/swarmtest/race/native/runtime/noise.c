/* Noise: where and how a thread is delayed. Each thread draws from a random sequence of its own, so
   that the same seed gives the same decisions whatever the interleaving. */

#include "threads.h"
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { YIELD, SLEEPS, WAITS, SYNCHRONISED_YIELD, BUSY_WAIT, INVERSE, KINDS };
enum {
    HALT_ONE_THREAD = 1, TIMEOUT_TAMPERING = 2, SHARED_VARIABLE_ONLY = 4,
    ONE_RANDOM_VARIABLE = 8, PREDECESSORS = 16
};
enum { TICK = 100 * 1000 /* nanoseconds of one unit of strength */, MOMENT = 20 * 1000 };

static struct {
    uint64_t seed;
    uint32_t frequency;
    uint32_t strength;
    uint32_t heuristics;
    uint32_t kind_count;
    uint8_t kinds[KINDS];
} settings;

static uint32_t yield_lock; /* held by the thread of a synchronised yield */
static uint32_t gate;       /* where threads that make wait noise wait */
static uint32_t halted;     /* a thread is halted */
static uint64_t alone_thread, alone_until, alone_probes;
static uint64_t chosen = UINT64_MAX; /* the least hash so far: its variable is the chosen one */

uint64_t mixed(uint64_t key) {
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
    key = (key ^ key >> 27) * 0x94d049bb133111eb;
    return key ^ key >> 31;
}

static uint64_t draw(void) {
    self->random += 0x9e3779b97f4a7c15;
    return mixed(self->random);
}

uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* A plain system call, because noise must not be a cancellation point. */
static void pause_for(uint64_t nanoseconds) {
    struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    syscall(SYS_nanosleep, &time, NULL);
}

void read_settings(void) {
    const char *text = getenv("SWARMTEST_NOISE"); /* "seed frequency strength kinds heuristics" */
    unsigned long long seed = 0;
    unsigned frequency = 0, strength = 1, kinds = 0, heuristics = 0;
    if (text) sscanf(text, "%llu %u %u %u %u", &seed, &frequency, &strength, &kinds, &heuristics);
    settings.seed = seed;
    settings.strength = strength ? strength : 1;
    settings.heuristics = heuristics;
    for (uint8_t kind = 0; kind < KINDS; kind++)
        if (kinds >> kind & 1) settings.kinds[settings.kind_count++] = kind;
    settings.frequency = settings.kind_count || heuristics & HALT_ONE_THREAD ? frequency : 0;
}

void forget_noise(void) {
    yield_lock = halted = 0;
    alone_thread = alone_until = 0;
}

static void start_random(void) {
    uint64_t key = mixed(settings.seed + 1);
    for (const char *c = self->name; *c; c++) key = mixed(key ^ (uint8_t)*c);
    self->random = key | 1;
}

static uint64_t others_probes(void) {
    uint64_t sum = 0;
    uint32_t count = memory->header.threads < THREADS ? memory->header.threads : THREADS;
    for (uint32_t i = 0; i < count; i++)
        if (&memory->threads[i] != self) sum += memory->threads[i].probes;
    return sum;
}

/* Wait until the other threads make no more progress, or a limit is reached. */
static void halt(void) {
    uint32_t nobody = 0;
    if (!__atomic_compare_exchange_n(&halted, &nobody, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return;
    uint64_t until = now() + (uint64_t)settings.strength * 50 * TICK;
    uint64_t before = others_probes(), after;
    while (now() < until) {
        pause_for(10 * TICK);
        after = others_probes();
        if (after == before) break;
        before = after;
    }
    __atomic_store_n(&halted, 0, __ATOMIC_RELEASE);
}

static void yields(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) sched_yield();
}

static void wait_at_gate(uint64_t nanoseconds) {
    struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    uint32_t came = __atomic_add_fetch(&gate, 1, __ATOMIC_ACQ_REL);
    syscall(SYS_futex, &gate, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    syscall(SYS_futex, &gate, FUTEX_WAIT_PRIVATE, came, &time, NULL, 0);
}

static void make(uint8_t kind, uint64_t random) {
    uint64_t units = 1 + random % settings.strength;
    uint64_t nanoseconds = 1 + random % ((uint64_t)settings.strength * TICK);
    uint64_t until;
    switch (kind) {
    case YIELD: yields(units); break;
    case SLEEPS: pause_for(nanoseconds); break;
    case WAITS: wait_at_gate(nanoseconds); break;
    case SYNCHRONISED_YIELD:
        while (__atomic_exchange_n(&yield_lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
        yields(units);
        __atomic_store_n(&yield_lock, 0, __ATOMIC_RELEASE);
        break;
    case BUSY_WAIT:
        until = now() + nanoseconds;
        while (now() < until) {}
        break;
    case INVERSE:
        alone_probes = units;
        __atomic_store_n(&alone_until, now() + (uint64_t)settings.strength * TICK, __ATOMIC_RELEASE);
        __atomic_store_n(&alone_thread, (uint64_t)self, __ATOMIC_RELEASE);
        break;
    }
}

/* The thread that runs alone makes no other noise; afterwards it lets the held threads go first. */
static void run_alone(void) {
    if (--alone_probes && now() < __atomic_load_n(&alone_until, __ATOMIC_ACQUIRE)) return;
    stop_running_alone();
    pause_for(2 * MOMENT);
}

static void stay_held(void) {
    uint64_t runs;
    while ((runs = __atomic_load_n(&alone_thread, __ATOMIC_ACQUIRE)) && runs != (uint64_t)self) {
        if (now() >= __atomic_load_n(&alone_until, __ATOMIC_ACQUIRE)) {
            __atomic_compare_exchange_n(&alone_thread, &runs, 0, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED);
            return;
        }
        pause_for(MOMENT);
    }
}

void stop_running_alone(void) {
    uint64_t runs = (uint64_t)self;
    if (__atomic_load_n(&alone_thread, __ATOMIC_RELAXED) == runs)
        __atomic_compare_exchange_n(&alone_thread, &runs, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The chosen variable is the shared one with the least hash: any is as likely, whichever come
   first. */
static int is_chosen(uint32_t site, const struct variable *variable) {
    if (!variable) return 0;
    if (!variable->several && !(memory->sites[site].flags & KNOWN_SHARED)) return 0;
    uint64_t key = memory->sites[variable->first_site].key;
    uint64_t hash = mixed(settings.seed ^ mixed(key));
    uint64_t least = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    while (hash < least && !__atomic_compare_exchange_n(&chosen, &least, hash, 0, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {}
    return hash <= least;
}

static int is_spared(uint32_t site, const struct variable *variable) {
    uint32_t flags = __atomic_load_n(&memory->sites[site].flags, __ATOMIC_RELAXED);
    uint32_t heuristics = settings.heuristics;
    if (heuristics & SHARED_VARIABLE_ONLY && !(flags & (SHARED | KNOWN_SHARED))) return 1;
    if (heuristics & PREDECESSORS && !(flags & (PREDECESSOR | KNOWN_PREDECESSOR))) return 1;
    return heuristics & ONE_RANDOM_VARIABLE && !is_chosen(site, variable);
}

void noise(uint32_t site, const struct variable *variable) {
    if (!settings.frequency) {
        self->probes++;
        return;
    }
    int error = errno;
    if (!self->random) start_random();
    self->probes++;
    uint64_t random = draw();
    uint64_t runs = __atomic_load_n(&alone_thread, __ATOMIC_RELAXED);
    if (runs == (uint64_t)self)
        run_alone();
    else if (runs)
        stay_held();
    if (random % 1000 < settings.frequency) {
        self->digest = mixed(self->digest ^ random ^ self->probes);
        if (runs != (uint64_t)self && !is_spared(site, variable)) {
            self->noises++;
            if (settings.heuristics & HALT_ONE_THREAD && !(random >> 10 & 7))
                halt();
            else if (settings.kind_count)
                make(settings.kinds[(random >> 32) % settings.kind_count], random >> 16);
        }
    }
    errno = error;
}

int tampers(void) {
    return attached() && settings.heuristics & TIMEOUT_TAMPERING && settings.frequency;
}

uint64_t shortened(uint64_t nanoseconds) {
    if (!current() || !tampers()) return nanoseconds;
    if (!self->random) start_random();
    uint64_t random = draw();
    if (random % 1000 >= settings.frequency) return nanoseconds;
    self->digest = mixed(self->digest ^ random ^ self->probes);
    return (uint64_t)((double)nanoseconds * (double)(random >> 20 & 1023) / 1024);
}
