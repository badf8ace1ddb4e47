/* The hooks of -fsanitize=thread for atomic operations, which have to perform the operations. Every
   operation uses the strongest memory order, so that only the interleaving is left to chance. */

#include "threads.h"

static void atomic_at(const volatile void *address, void *caller, int write) {
    if (!self || alone) return;
    uint32_t site = site_of(caller, ATOMIC);
    mark(site, VISITED);
    const struct variable *variable = touch((uint64_t)address, site, write);
    if (variable && variable->several) record_pair(site);
    noise(site, variable);
}

#define MODIFY(bits, type, name)                                                        \
    EXPORTED type __tsan_atomic##bits##_fetch_##name(volatile type *at, type value, int order) { \
        (void)order;                                                                    \
        atomic_at(at, CALLER, 1);                                                       \
        return __atomic_fetch_##name(at, value, __ATOMIC_SEQ_CST);                      \
    }

#define ATOMICS(bits, type)                                                             \
    EXPORTED type __tsan_atomic##bits##_load(const volatile type *at, int order) {      \
        (void)order;                                                                    \
        atomic_at(at, CALLER, 0);                                                       \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                   \
    }                                                                                   \
    EXPORTED void __tsan_atomic##bits##_store(volatile type *at, type value, int order) { \
        (void)order;                                                                    \
        atomic_at(at, CALLER, 1);                                                       \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                  \
    }                                                                                   \
    EXPORTED type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order) { \
        (void)order;                                                                    \
        atomic_at(at, CALLER, 1);                                                       \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                        \
    }                                                                                   \
    MODIFY(bits, type, add)                                                             \
    MODIFY(bits, type, sub)                                                             \
    MODIFY(bits, type, and)                                                             \
    MODIFY(bits, type, or)                                                              \
    MODIFY(bits, type, xor)                                                             \
    MODIFY(bits, type, nand)                                                            \
    EXPORTED int __tsan_atomic##bits##_compare_exchange_strong(                         \
        volatile type *at, type *expected, type value, int order, int otherwise) {      \
        (void)order, (void)otherwise;                                                   \
        atomic_at(at, CALLER, 1);                                                       \
        return __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST,    \
                                           __ATOMIC_SEQ_CST);                           \
    }                                                                                   \
    EXPORTED int __tsan_atomic##bits##_compare_exchange_weak(                           \
        volatile type *at, type *expected, type value, int order, int otherwise) {      \
        (void)order, (void)otherwise;                                                   \
        atomic_at(at, CALLER, 1);                                                       \
        return __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST,    \
                                           __ATOMIC_SEQ_CST);                           \
    }                                                                                   \
    EXPORTED type __tsan_atomic##bits##_compare_exchange_val(                           \
        volatile type *at, type expected, type value, int order, int otherwise) {       \
        (void)order, (void)otherwise;                                                   \
        atomic_at(at, CALLER, 1);                                                       \
        __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST,          \
                                    __ATOMIC_SEQ_CST);                                  \
        return expected;                                                                \
    }

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

EXPORTED void __tsan_atomic_thread_fence(int order) {
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

EXPORTED void __tsan_atomic_signal_fence(int order) {
    (void)order;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#ifdef __SIZEOF_INT128__
/* Not every machine has 128-bit instructions. All 128-bit operations come here, so a lock
   suffices. */
typedef unsigned __int128 wide;
static uint32_t wide_lock;

static void wide_begins(void) {
    while (__atomic_exchange_n(&wide_lock, 1, __ATOMIC_ACQUIRE)) {}
}

static void wide_ends(void) { __atomic_store_n(&wide_lock, 0, __ATOMIC_RELEASE); }

#define WIDE(name, after)                                                               \
    EXPORTED wide __tsan_atomic128_##name(volatile wide *at, wide value, int order) {   \
        (void)order;                                                                    \
        atomic_at(at, CALLER, 1);                                                       \
        wide_begins();                                                                  \
        wide before = *at;                                                              \
        *at = after;                                                                    \
        wide_ends();                                                                    \
        return before;                                                                  \
    }

WIDE(exchange, value)
WIDE(fetch_add, before + value)
WIDE(fetch_sub, before - value)
WIDE(fetch_and, before &value)
WIDE(fetch_or, before | value)
WIDE(fetch_xor, before ^ value)
WIDE(fetch_nand, ~(before & value))

EXPORTED wide __tsan_atomic128_load(const volatile wide *at, int order) {
    (void)order;
    atomic_at(at, CALLER, 0);
    wide_begins();
    wide value = *at;
    wide_ends();
    return value;
}

EXPORTED void __tsan_atomic128_store(volatile wide *at, wide value, int order) {
    (void)order;
    atomic_at(at, CALLER, 1);
    wide_begins();
    *at = value;
    wide_ends();
}

static int wide_compare_exchange(volatile wide *at, wide *expected, wide value) {
    wide_begins();
    wide before = *at;
    int same = before == *expected;
    if (same) *at = value;
    wide_ends();
    *expected = before;
    return same;
}

#define WIDE_COMPARE(strength)                                                          \
    EXPORTED int __tsan_atomic128_compare_exchange_##strength(                          \
        volatile wide *at, wide *expected, wide value, int order, int otherwise) {      \
        (void)order, (void)otherwise;                                                   \
        atomic_at(at, CALLER, 1);                                                       \
        return wide_compare_exchange(at, expected, value);                              \
    }
WIDE_COMPARE(strong)
WIDE_COMPARE(weak)

EXPORTED wide __tsan_atomic128_compare_exchange_val(volatile wide *at, wide expected, wide value,
                                                    int order, int otherwise) {
    (void)order, (void)otherwise;
    atomic_at(at, CALLER, 1);
    wide_compare_exchange(at, &expected, value);
    return expected;
}
#endif
