/* Mutexes, read-write locks and spin locks. If a lock is not free at once, the acquiring site
   counts as blocked, and the site where the holder acquired it as blocking. */

#include "threads.h"
#include <errno.h>
#include <pthread.h>
#include <time.h>

/* `take` blocks; `attempt` does not, and returns EBUSY if the lock is not free. */
#define ACQUIRE(operation, object, ends, attempt, take)                                 \
    do {                                                                                \
        if (!self) return take;                                                         \
        uint32_t site = event(CALLER, operation, object);                               \
        int answer = attempt;                                                           \
        if (answer == EBUSY || answer == EAGAIN) {                                      \
            mark(site, BLOCKED);                                                        \
            mark_holders(object, BLOCKING);                                             \
            wait_begins(operation, site, object, ends);                                 \
            answer = take;                                                              \
            wait_ends();                                                                \
        }                                                                               \
        if (!answer || answer == EOWNERDEAD) hold(object, site);                        \
        after(site);                                                                    \
        return answer;                                                                  \
    } while (0)

#define ATTEMPT(operation, object, attempt)                                             \
    do {                                                                                \
        if (!self) return attempt;                                                      \
        uint32_t site = event(CALLER, operation, object);                               \
        int answer = attempt;                                                           \
        if (answer == EBUSY) mark_holders(object, BLOCKING), mark(site, BLOCKED);       \
        if (!answer || answer == EOWNERDEAD) hold(object, site);                        \
        after(site);                                                                    \
        return answer;                                                                  \
    } while (0)

#define RELEASE(operation, object, release)                                             \
    do {                                                                                \
        if (!self) return release;                                                      \
        uint32_t site = event(CALLER, operation, object);                               \
        let_go(object);                                                                 \
        int answer = release;                                                           \
        after(site);                                                                    \
        return answer;                                                                  \
    } while (0)

EXPORTED int pthread_mutex_lock(pthread_mutex_t *mutex) {
    ACQUIRE(LOCK, mutex, 0, NEXT(pthread_mutex_trylock)(mutex), NEXT(pthread_mutex_lock)(mutex));
}

EXPORTED int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    ATTEMPT(TRYLOCK, mutex, NEXT(pthread_mutex_trylock)(mutex));
}

EXPORTED int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                                     const struct timespec *restrict until) {
    ACQUIRE(TIMEDLOCK, mutex, 1, NEXT(pthread_mutex_trylock)(mutex),
            NEXT(pthread_mutex_timedlock)(mutex, until));
}

EXPORTED int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock,
                                     const struct timespec *restrict until) {
    ACQUIRE(TIMEDLOCK, mutex, 1, NEXT(pthread_mutex_trylock)(mutex),
            NEXT(pthread_mutex_clocklock)(mutex, clock, until));
}

EXPORTED int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    RELEASE(UNLOCK, mutex, NEXT(pthread_mutex_unlock)(mutex));
}

EXPORTED int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    ACQUIRE(READ_LOCK, lock, 0, NEXT(pthread_rwlock_tryrdlock)(lock),
            NEXT(pthread_rwlock_rdlock)(lock));
}

EXPORTED int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    ACQUIRE(WRITE_LOCK, lock, 0, NEXT(pthread_rwlock_trywrlock)(lock),
            NEXT(pthread_rwlock_wrlock)(lock));
}

EXPORTED int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock) {
    ATTEMPT(READ_LOCK, lock, NEXT(pthread_rwlock_tryrdlock)(lock));
}

EXPORTED int pthread_rwlock_trywrlock(pthread_rwlock_t *lock) {
    ATTEMPT(WRITE_LOCK, lock, NEXT(pthread_rwlock_trywrlock)(lock));
}

EXPORTED int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock,
                                        const struct timespec *restrict until) {
    ACQUIRE(READ_LOCK, lock, 1, NEXT(pthread_rwlock_tryrdlock)(lock),
            NEXT(pthread_rwlock_timedrdlock)(lock, until));
}

EXPORTED int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock,
                                        const struct timespec *restrict until) {
    ACQUIRE(WRITE_LOCK, lock, 1, NEXT(pthread_rwlock_trywrlock)(lock),
            NEXT(pthread_rwlock_timedwrlock)(lock, until));
}

EXPORTED int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    RELEASE(READ_WRITE_UNLOCK, lock, NEXT(pthread_rwlock_unlock)(lock));
}

EXPORTED int pthread_spin_lock(pthread_spinlock_t *lock) {
    ACQUIRE(SPIN_LOCK, (const void *)lock, 0, NEXT(pthread_spin_trylock)(lock),
            NEXT(pthread_spin_lock)(lock));
}

EXPORTED int pthread_spin_trylock(pthread_spinlock_t *lock) {
    ATTEMPT(SPIN_LOCK, (const void *)lock, NEXT(pthread_spin_trylock)(lock));
}

EXPORTED int pthread_spin_unlock(pthread_spinlock_t *lock) {
    RELEASE(SPIN_UNLOCK, (const void *)lock, NEXT(pthread_spin_unlock)(lock));
}
