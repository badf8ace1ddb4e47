/* C11 threads. In glibc these functions bypass the pthread functions and call their internals,
   so they are intercepted here as well; a thrd_t is a pthread_t. */

#include "threads.h"
#if __has_include(<threads.h>)
#include <stdlib.h>
#include <threads.h>
#include <time.h>

/* ---- mutexes ---- */

#define TAKE(operation, ends, take)                                                     \
    do {                                                                                \
        if (!self) return take;                                                         \
        uint32_t site = event(CALLER, operation, mutex);                                \
        int answer = NEXT(mtx_trylock)(mutex);                                          \
        if (answer == thrd_busy) {                                                      \
            mark(site, BLOCKED);                                                        \
            mark_holders(mutex, BLOCKING);                                              \
            wait_begins(operation, site, mutex, ends);                                  \
            answer = take;                                                              \
            wait_ends();                                                                \
        }                                                                               \
        if (answer == thrd_success) hold(mutex, site);                                  \
        after(site);                                                                    \
        return answer;                                                                  \
    } while (0)

EXPORTED int mtx_lock(mtx_t *mutex) { TAKE(LOCK, 0, NEXT(mtx_lock)(mutex)); }

EXPORTED int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until) {
    TAKE(TIMEDLOCK, 1, NEXT(mtx_timedlock)(mutex, until));
}

EXPORTED int mtx_trylock(mtx_t *mutex) {
    if (!self) return NEXT(mtx_trylock)(mutex);
    uint32_t site = event(CALLER, TRYLOCK, mutex);
    int answer = NEXT(mtx_trylock)(mutex);
    if (answer == thrd_busy) mark_holders(mutex, BLOCKING), mark(site, BLOCKED);
    if (answer == thrd_success) hold(mutex, site);
    after(site);
    return answer;
}

EXPORTED int mtx_unlock(mtx_t *mutex) { RELEASE(UNLOCK, mutex, NEXT(mtx_unlock)(mutex)); }

/* ---- conditions ---- */

EXPORTED int cnd_wait(cnd_t *condition, mtx_t *mutex) {
    if (!self) return NEXT(cnd_wait)(condition, mutex);
    WAIT_ON_CONDITION(CONDITION_WAIT, 0, NEXT(cnd_wait)(condition, mutex));
}

EXPORTED int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                           const struct timespec *restrict until) {
    if (!self) return NEXT(cnd_timedwait)(condition, mutex, until);
    struct timespec time = sooner(CLOCK_REALTIME, until);
    WAIT_ON_CONDITION(CONDITION_TIMEDWAIT, 1, NEXT(cnd_timedwait)(condition, mutex, &time));
}

EXPORTED int cnd_signal(cnd_t *condition) {
    AT_ONCE(SIGNAL, condition, NEXT(cnd_signal)(condition));
}

EXPORTED int cnd_broadcast(cnd_t *condition) {
    AT_ONCE(BROADCAST, condition, NEXT(cnd_broadcast)(condition));
}

/* ---- threads ---- */

struct c11_start {
    thrd_start_t function;
    void *argument;
    struct thread *thread;
    void *caller;
};

static int c11_started(void *given) {
    struct c11_start start = *(struct c11_start *)given;
    free(given);
    thread_begins(start.thread);
    event(start.caller, START, NULL);
    return start.function(start.argument);
}

EXPORTED int thrd_create(thrd_t *handle, thrd_start_t function, void *argument) {
    if (!self) return NEXT(thrd_create)(handle, function, argument);
    uint32_t site = event(CALLER, CREATE, NULL);
    struct c11_start *start = malloc(sizeof *start);
    if (!start) return thrd_nomem;
    struct c11_start values = {function, argument, new_thread(self), CALLER};
    *start = values;
    int answer = NEXT(thrd_create)(handle, c11_started, start);
    if (answer != thrd_success) {
        thread_failed(values.thread);
        free(start);
    }
    after(site);
    return answer;
}

EXPORTED int thrd_join(thrd_t handle, int *result) {
    if (!self) return NEXT(thrd_join)(handle, result);
    uint32_t site = event(CALLER, JOIN, NULL), slot = slot_of((uint64_t)handle);
    if (slot && __atomic_load_n(&memory->threads[slot - 1].state, __ATOMIC_ACQUIRE) != SLOT_ENDED)
        mark(site, BLOCKED);
    self->wait_thread = slot;
    wait_begins(JOIN, site, (const void *)handle, 0);
    int answer = NEXT(thrd_join)(handle, result);
    wait_ends();
    if (answer == thrd_success) thread_joined((uint64_t)handle);
    after(site);
    return answer;
}

EXPORTED int thrd_sleep(const struct timespec *asked, struct timespec *left) {
    if (!self || asked->tv_sec < 0 || asked->tv_nsec < 0 || asked->tv_nsec >= 1000000000)
        return NEXT(thrd_sleep)(asked, left);
    struct timespec time = time_of(shortened(nanoseconds_of(asked)));
    SLEEPING(NEXT(thrd_sleep)(&time, left));
}
#endif
