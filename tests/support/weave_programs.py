"""Small programs, one per feature of Python and per way to leave a suite: name -> (text, inputs).

`run` is what is called; everything is on lines of its own unless a program is about that.
"""

from __future__ import annotations

from typing import Any

PROGRAMS: dict[str, tuple[str, tuple[Any, ...]]] = {}


def _add(name: str, text: str, *inputs: Any) -> None:
    assert name not in PROGRAMS
    PROGRAMS[name] = (text, inputs or (0,))


# Decisions and loops

_add(
    "if, elif, else",
    """
    def run(x):
        if x == 0:
            y = 1
        elif x == 1:
            y = 2
        elif x == 2:
            pass
        else:
            y = 4
        return x
    """,
    0, 1, 2, 3,
)  # fmt: skip
_add(
    "if without else at the end",
    """
    def run(x):
        y = 1
        if x:
            y = 2
    """,
    0, 1,
)  # fmt: skip
_add(
    "if in a loop, as its last statement",
    """
    def run(x):
        for i in range(x):
            if i == 1:
                y = i
    """,
    0, 1, 2, 3,
)  # fmt: skip
_add(
    "while with else",
    """
    def run(x):
        while x > 0:
            x -= 1
            if x == 3:
                break
            if x == 5:
                continue
            y = x
        else:
            y = -1
        return x
    """,
    0, 2, 4, 6, 5,
)  # fmt: skip
_add(
    "for with else",
    """
    def run(x):
        for i in range(x):
            if i == 2:
                break
        else:
            return "none"
        return i
    """,
    0, 1, 3,
)  # fmt: skip
_add(
    "for at the end",
    """
    def run(x):
        for i in x:
            y = 1 // i
    """,
    (), (1,), (1, 0), None,
)  # fmt: skip
_add(
    "nested loops",
    """
    def run(x):
        found = []
        for i in range(x):
            for j in range(i):
                if j == 2:
                    continue
                if i == 4:
                    break
                found.append(j)
            else:
                found.append(-1)
        return found
    """,
    0, 1, 3, 5, 6,
)  # fmt: skip
_add(
    "endless loops",
    """
    def run(x):
        while True:
            x += 1
            if x > 3:
                break
        while 1:
            x += 1
            if x > 8:
                return x
    """,
    0, 9,
)  # fmt: skip
_add(
    "endless loop left by an exception",
    """
    def run(x):
        items = list(range(x))
        try:
            while True:
                items.pop()
        except IndexError:
            return "empty"
    """,
    0, 3,
)  # fmt: skip
_add(
    "conditions that are constants",
    """
    def run(x):
        if 1:
            x += 1
        if 0:
            x += 2
        if True:
            x += 3
        else:
            x += 4
        if None:
            x += 5
        else:
            x += 6
        if not 0:
            x += 7
        while 0:
            x += 8
        if __debug__:
            x += 9
        return x
    """,
)
_add(
    "a constant condition at the end of a suite",
    """
    def run(x):
        if x:
            if 0:
                x = 1
        for i in range(x):
            if 1:
                x = 2
        while False:
            x = 3
    """,
    0, 2,
)  # fmt: skip
_add(
    "while False with else",
    """
    def run(x):
        y = 0
        while False:
            y = 1
        else:
            y = 2
        return y
    """,
)
_add(
    "walrus and chained comparison",
    """
    def run(x):
        if (y := x * 2) > 3:
            x = y
        while 0 < (n := x - 1) < 9 and n != 5:
            x = n
        return 1 < x < 3 < y
    """,
    0, 1, 2, 7, 30,
)  # fmt: skip
_add(
    "and, or, not over several lines",
    """
    def run(x):
        if (
            x > 1
            and x < 9
            or not x
        ):
            return [
                x,
                x + 1,
            ]
        return (
            1 //
            (x - 1)
        )
    """,
    0, 1, 2, 10,
)  # fmt: skip
_add(
    "conditional expressions and lambdas",
    """
    def run(x):
        f = lambda y: y + 1 if y else 0
        g = lambda: (
            1 // x
        )
        z = f(x) if x else f(0)
        return g() + z
    """,
    0, 1,
)  # fmt: skip

# Statements after which nothing of the suite is reached

_add(
    "code after return, raise, break and continue",
    """
    def first(x):
        y = x
        return y
        y = 2

    def second(x):
        y = x
        raise ValueError(y)
        y = 2

    def third(x):
        for i in range(x):
            y = i
            if i == 1:
                y = 3
                break
                y = 4
            y = 5
            continue
            y = 6
        return y

    def run(x):
        try:
            y = first(x)
            second(y)
        except ValueError:
            z = 1
        return third(x + 1)
    """,
    0, 1, 2,
)  # fmt: skip
_add(
    "code after a bare raise",
    """
    def inner():
        try:
            1 // 0
        except ZeroDivisionError:
            x = 1
            raise
            x = 2

    def run(x):
        try:
            inner()
        except ArithmeticError:
            return "caught"
    """,
)

# One line

_add(
    "compound statements in one line",
    """
    def run(x):
        if x == 0: return 0
        if x == 1: y = 1; x += 1
        else: y = 2; x += 2
        for i in range(x): y += i
        while x > 3: x -= 1
        try: z = 1 // (x - 2)
        except ZeroDivisionError: z = 9
        finally: y += 1
        return y, z
    """,
    0, 1, 2, 5,
)  # fmt: skip
_add(
    "one-line bodies that raise",
    """
    def fail(x):
        raise ValueError(x)

    def run(x):
        try:
            if fail(x) if x == 1 else x: x = 5; fail(x); x = 6
            for i in fail(x) if x == 0 else [1]: x = 7; fail(x); x = 8
        except ValueError as e:
            return e.args
    """,
    0, 1, 2,
)  # fmt: skip
_add(
    "a condition in one line with what it guards, that fails",
    """
    def run(x):
        if 1 // x: return 1
        return 2
    """,
    0, 1, 2,
)  # fmt: skip
_add(
    "a condition whose last line has what it guards on it",
    """
    def run(x):
        a = 1
        if (x
            and 1 // (x - 1)): a = 2
        return a
    """,
    0, 1, 2,
)  # fmt: skip
_add(
    "functions and classes in one line",
    """
    def f(x): return x + 1
    class A: y = 1; z = 2
    class B(A): pass
    def g(): pass
    def run(x): return f(x) + A.y
    """,
    1,
)
_add(
    "several statements in a line",
    """
    def run(x):
        a = 1; b = 1 // x; c = 2
        d = 1; return a + b + c + d
    """,
    0, 1,
)  # fmt: skip

# try

_add(
    "try, except, else, finally",
    """
    def run(x):
        log = []
        try:
            log.append(1)
            y = 1 // x
            log.append(2)
        except ZeroDivisionError:
            log.append(3)
        except (TypeError, ValueError) as e:
            log.append(4)
        else:
            log.append(5)
        finally:
            log.append(6)
        return log
    """,
    0, 1, None,
)  # fmt: skip
_add(
    "an exception that no clause catches",
    """
    def inner(x):
        try:
            a = 1
            b = x[0]
            c = 2
        except KeyError:
            d = 1
        except AttributeError:
            d = 2

    def run(x):
        try:
            return inner(x)
        except TypeError:
            return "type"
        except IndexError:
            return "index"
    """,
    {}, [], 3, [1],
)  # fmt: skip
_add(
    "return in try, handler and else, with finally",
    """
    def run(x):
        log = []
        def inner():
            try:
                log.append(1)
                if x == 0:
                    return "body"
                if x == 1:
                    raise KeyError
                log.append(2)
            except KeyError:
                log.append(3)
                return "handler"
            else:
                log.append(4)
                return "else"
            finally:
                log.append(5)
        return inner(), log
    """,
    0, 1, 2,
)  # fmt: skip
_add(
    "return in finally swallows",
    """
    def run(x):
        try:
            a = 1
            b = 1 // x
            c = 2
        except TypeError:
            d = 1
            e = {}[x]
            f = 2
        else:
            g = 1
            h = [][x]
            i = 2
        finally:
            return "finally"
        return "after"
    """,
    0, 1, None,
)  # fmt: skip
_add(
    "break and continue in finally",
    """
    def run(x):
        for i in range(x):
            try:
                a = 1
                b = 1 // (i - 1)
                c = 2
            finally:
                if i == 1:
                    continue
                if i == 3:
                    break
                d = 3
        return i
    """,
    1, 2, 3, 4, 5,
)  # fmt: skip
_add(
    "break and continue in try",
    """
    def run(x):
        log = []
        for i in range(x):
            try:
                log.append(i)
                if i == 1:
                    continue
                if i == 3:
                    break
                log.append("end")
            except ValueError:
                break
            finally:
                log.append("finally")
        else:
            log.append("else")
        return log
    """,
    0, 1, 2, 3, 4, 5,
)  # fmt: skip
_add(
    "handlers that leave a loop",
    """
    def run(x):
        for i in range(x):
            try:
                1 // (i - 2)
                [][i - 1]
                y = 1
            except IndexError:
                continue
            except ZeroDivisionError:
                break
        return i
    """,
    1, 2, 3,
)  # fmt: skip
_add(
    "an exception in a handler and in finally",
    """
    def inner(x):
        try:
            y = 1 // x
        except ZeroDivisionError:
            y = 2
            z = [][x]
            y = 3
        finally:
            y = 4
            z = {}[x]
            y = 5
        return y

    def run(x):
        try:
            inner(x)
        except Exception as e:
            return repr(e)
    """,
    0, 1,
)  # fmt: skip
_add(
    "an exception in the clause of a handler",
    """
    def inner(x):
        try:
            raise ValueError(x)
        except (KeyError, x.kind):
            y = 1
        except ValueError:
            y = 2
        return y

    class Good:
        kind = IndexError

    def run(x):
        try:
            return inner(Good if x else x)
        except AttributeError:
            return "no kind"
    """,
    0, 1,
)  # fmt: skip
_add(
    "an exception in the clause of a handler, and nothing else that may fail",
    """
    def run(x):
        try:
            raise ValueError(x)
        except x.kind:
            y = 1
        except KeyError:
            y = 2
    """,
)
_add(
    "an exception in the clause of a handler over several lines",
    """
    def run(x):
        a = 1
        try:
            raise ValueError(x)
        except (
            KeyError,
            x.kind,
        ):
            y = 1
    """,
)
_add(
    "an exception in the clause of a handler that finally swallows",
    """
    def run(x):
        a = 1
        try:
            raise ValueError(x)
        except x.kind:
            y = 1
        finally:
            return 2
    """,
)
_add(
    "a clause that is an expression",
    """
    def kinds():
        return KeyError, IndexError

    def run(x):
        try:
            if x == 0:
                {}[0]
            elif x == 1:
                raise SystemExit
        except kinds():
            return "kinds"
        except BaseException:
            return "base"
    """,
    0, 1, 2,
)  # fmt: skip
_add(
    "bare except",
    """
    def run(x):
        try:
            a = 1
            b = 1 // x
            c = 1
        except TypeError:
            b = 2
        except:
            b = 3
        return b
    """,
    0, 1, None,
)  # fmt: skip
_add(
    "nested try",
    """
    def run(x):
        try:
            a = 1
            try:
                b = 1 // x
                try:
                    c = [][b]
                    d = 1
                except KeyError:
                    c = 4
                d = 2
            except ZeroDivisionError:
                d = 3
                raise KeyError from None
            d = 4
        except LookupError as e:
            d = type(e)
        return d
    """,
    0, 1, None,
)  # fmt: skip
_add(
    "try and finally around nothing that fails",
    """
    def run(x):
        try:
            pass
        finally:
            x += 1
        try:
            x += 1
        except ValueError:
            x += 2
        else:
            x += 3
    """,
)
_add(
    "raise from, and the chain of causes",
    """
    def run(x):
        try:
            1 // x
        except ZeroDivisionError as e:
            if x is False:
                raise ValueError("chained") from e
            raise KeyError("context")
    """,
    0, False, 1,
)  # fmt: skip
_add(
    "a bare raise in a helper called from a handler",
    """
    def again():
        y = 1
        raise

    def run(x):
        try:
            a = 1
            b = 1 // x
            c = 2
        except ZeroDivisionError:
            d = 1
            again()
            d = 2
        return 3
    """,
    0, 1,
)  # fmt: skip
_add(
    "a bare raise in a helper that swallows",
    """
    def again(x):
        try:
            y = 1
            if x == 0:
                raise
            z = 2
        except ZeroDivisionError:
            return "here"

    def run(x):
        try:
            1 // 0
        except ZeroDivisionError:
            d = again(x)
        return d
    """,
    0, 1,
)  # fmt: skip
_add(
    "an exception whose traceback is taken away",
    """
    def inner(x):
        try:
            a = 1
            b = 1 // x
            c = 2
        except ZeroDivisionError as e:
            e.__traceback__ = None
            raise

    def run(x):
        try:
            a = inner(x)
            b = 2
        except ZeroDivisionError as e:
            return str(e.__traceback__.tb_next)
        except TypeError as e:
            raise e.with_traceback(None)
        return b
    """,
    0, 1, None,
)  # fmt: skip
_add(
    "an exception object that is raised again later",
    """
    saved = []

    def run(x):
        if saved:
            a = 1
            raise saved.pop()
            b = 2
        try:
            c = 1
            d = 1 // x
            e = 2
        except ZeroDivisionError as error:
            saved.append(error)
        return len(saved)
    """,
    0, 0, 1,
)  # fmt: skip
_add(
    "exception groups",
    """
    def run(x):
        log = []
        try:
            log.append(1)
            if x:
                raise ExceptionGroup("g", [kind() for kind in x])
            log.append(2)
        except* ValueError as group:
            log.append(3)
        except* (TypeError, KeyError):
            log.append(4)
        else:
            log.append(5)
        finally:
            log.append(6)
        return log
    """,
    [], [ValueError], [TypeError], [ValueError, KeyError], [OSError], [OSError, ValueError],
)  # fmt: skip
_add(
    "an exception group that no clause catches, in a function with nothing else",
    """
    def run(x):
        try:
            raise ExceptionGroup("g", [kind() for kind in x])
        except* ValueError:
            a = 1
        except* KeyError:
            b = 1
    """,
    [OSError], [ValueError], [KeyError], [ValueError, KeyError],
)  # fmt: skip
_add(
    "KeyboardInterrupt and SystemExit",
    """
    def inner(x):
        a = 1
        if x == 0:
            raise KeyboardInterrupt
        if x == 1:
            raise SystemExit(3)
        b = 1

    def run(x):
        try:
            a = 1
            inner(x)
            b = 2
        except Exception:
            c = 1
        finally:
            d = 1
        return 4
    """,
    0, 1, 2,
)  # fmt: skip
_add(
    "RecursionError",
    """
    def down(n):
        n += 1
        return down(n) + 1

    def run(x):
        try:
            a = 1
            down(0)
            b = 2
        except RecursionError:
            c = 1
        return 1
    """,
)
_add(
    "assert",
    """
    def run(x):
        y = 1
        assert x != 0, "zero"
        assert x, (
            1 // 0
        )
        assert (
            x != 2
        )
        return y
    """,
    0, 1, 2, "",
)  # fmt: skip

# with

_add(
    "with that swallows",
    """
    from contextlib import suppress

    def run(x):
        a = 1
        with suppress(ZeroDivisionError):
            b = 1
            c = 1 // x
            d = 1
        with suppress(TypeError):
            e = 1
            f = 1 // 0
            g = 1
    """,
    0, 1, None,
)  # fmt: skip
_add(
    "with as the last statement of suites",
    """
    from contextlib import suppress

    def run(x):
        for i in range(3):
            with suppress(ZeroDivisionError):
                if i == x:
                    a = 1 // 0
                    b = 2
    """,
    0, 2, 3,
)  # fmt: skip
_add(
    "a second context that fails, swallowed by the first",
    """
    from contextlib import suppress

    def boom(x):
        if x:
            raise ValueError
        return suppress()

    def run(x):
        a = 1
        with suppress(ValueError), boom(x):
            b = 1
    """,
    0, 1,
)  # fmt: skip
_add(
    "a second context over several lines that fails, swallowed by the first",
    """
    from contextlib import suppress

    def boom(x):
        if x:
            raise ValueError
        return suppress()

    def run(x):
        if x < 2:
            with (
                suppress(ValueError),
                boom(x) as y,
            ):
                b = 1
        return 5
    """,
    0, 1, 2,
)  # fmt: skip
_add(
    "a header of with that fails",
    """
    def run(x):
        a = 1
        with x.missing:
            b = 1
        c = 1
    """,
)
_add(
    "an __exit__ that fails, and __enter__",
    """
    class Cm:
        def __init__(self, x):
            self.x = x

        def __enter__(self):
            if self.x == 0:
                raise KeyError("enter")
            return self

        def __exit__(self, *args):
            if self.x == 1:
                raise KeyError("exit")
            return self.x == 2

    def run(x):
        a = 1
        try:
            with Cm(x) as cm:
                b = 1
                if x < 3:
                    1 // 0
                c = 1
            d = 1
        except KeyError:
            e = 1
        return 2
    """,
    0, 1, 2, 3,
)  # fmt: skip
_add(
    "return, break and continue in with",
    """
    from contextlib import nullcontext

    def run(x):
        for i in range(5):
            with nullcontext(), nullcontext():
                a = i
                if i == x:
                    break
                if i == x - 3:
                    continue
                if x == 9:
                    return i
                a = 2
        return "end"
    """,
    1, 4, 7, 9,
)  # fmt: skip
_add(
    "with in try in with",
    """
    from contextlib import suppress

    def run(x):
        with suppress(KeyError):
            a = 1
            try:
                b = 1
                with suppress(IndexError):
                    c = 1
                    if x == 0:
                        [][0]
                    if x == 1:
                        {}[0]
                    if x == 2:
                        1 // 0
                    d = 1
                e = 1
            except ZeroDivisionError:
                f = 1
            g = 1
        h = 1
    """,
    0, 1, 2, 3,
)  # fmt: skip

# match

_add(
    "match with literals, captures, guards",
    """
    def run(x):
        match x:
            case 0:
                return "zero"
            case int(n) if n > 5:
                y = n
            case [a, *rest] if rest:
                y = a
            case {"k": v, **more}:
                y = v
            case "a" | "b" as s:
                y = s
        return 1
    """,
    0, 3, 7, [1], [1, 2], {"k": 1}, "b", "c",
)  # fmt: skip
_add(
    "match that always matches",
    """
    def run(x):
        match x:
            case 1:
                y = 1
            case _:
                y = 2
        match x:
            case z:
                pass
    """,
    0, 1,
)  # fmt: skip
_add(
    "match with class patterns",
    """
    class P:
        __match_args__ = ("a", "b")

        def __init__(self, a, b):
            self.a = a
            self.b = b

    def run(x):
        p = P(*x)
        match p:
            case P(0, 0):
                return "origin"
            case P(a=0) | P(b=0):
                return "axis"
            case P(
                a,
                b,
            ) if a == b:
                return "diagonal"
    """,
    (0, 0), (0, 1), (2, 2), (1, 2),
)  # fmt: skip
_add(
    "match whose guards and patterns fail",
    """
    class Odd:
        @property
        def z(self):
            raise KeyError

    def run(x):
        a = 1
        match x:
            case 0:
                y = 0
            case int() if 1 // (x - 1):
                y = 1
            case str() if (
                x
                + 1
            ):
                y = 2
            case 2.5:
                y = 3
            case Odd(z=1):
                y = 4
    """,
    0, 1, 2, "s", 2.5, None,
)  # fmt: skip
_add(
    "match with a pattern that fails",
    """
    class Odd:
        @property
        def z(self):
            raise KeyError

    def run(x):
        match Odd():
            case 1:
                y = 1
            case Odd(
                z=1
            ):
                y = 4
    """,
)
_add(
    "match in a loop, with break and continue",
    """
    def run(x):
        for i in x:
            match i:
                case 1:
                    continue
                case 2:
                    break
                case 3:
                    return 3
        return 0
    """,
    [], [0, 1], [2], [3], [1, 1, 2],
)  # fmt: skip

# Scopes

_add(
    "nested functions, closures and nonlocal",
    """
    total = 0

    def run(x):
        n = 0
        def bump(by=1):
            nonlocal n
            global total
            n += by
            total += by
            def deeper():
                return n
            return deeper
        for i in range(x):
            bump(i)()
        return n
    """,
    0, 2,
)  # fmt: skip
_add(
    "recursion",
    """
    def fib(n):
        if n < 2:
            return n
        a = fib(n - 1)
        return a + fib(n - 2)

    def run(x):
        return fib(x)
    """,
    0, 1, 5,
)  # fmt: skip
_add(
    "decorators",
    """
    import functools

    def twice(f):
        @functools.wraps(f)
        def inner(*args):
            return f(*args), f(*args)
        return inner

    def named(
        name,
    ):
        def make(f):
            f.name = name
            return f
        return make

    @twice
    @named(
        "n"
    )
    def decorated(
        x,
        y=1,
    ):
        return x + y

    def run(x):
        @twice
        def local(z):
            return z
        @named("c")
        class C:
            @property
            def p(self):
                return x

            @staticmethod
            def s(): return 1
        return decorated(x), local(x), C().p, C.name
    """,
)
_add(
    "decorators and defaults that fail",
    """
    def no(x):
        raise ValueError(x)

    def run(x):
        try:
            a = 1
            if x == 0:
                @no
                def f():
                    pass
            b = 1
            def g(
                y=1 // (x - 1),
            ):
                return y
            c = 1
            class D(no(x) if x == 2 else object):
                d = 1 // (x - 3)
                e = 1
            d = 1
        except (ValueError, ZeroDivisionError):
            e = 1
        return 1
    """,
    0, 1, 2, 3, 4,
)  # fmt: skip
_add(
    "class bodies with control flow",
    """
    class A:
        '''Documented.'''
        x = 1
        if x:
            y = 2
        else:
            y = 3
        for i in range(2):
            z = i
        try:
            w = undefined
        except NameError:
            w = 0
        def m(self):
            '''Documented.'''
            return self.w
        class B:
            def n(self): return 1
            v = [i for i in range(3)]

    def run(x):
        class Local(A):
            if x:
                extra = 1
            with open(__import__("os").devnull) as f:
                pass
            def m(self):
                return super().m() + 1
        return Local().m(), A.B().n(), A.__doc__, A.m.__doc__, hasattr(Local, "extra")
    """,
    0, 1,
)  # fmt: skip
_add(
    "a class body in a function that fails",
    """
    def run(x):
        a = 1
        try:
            class C:
                b = 1
                c = 1 // x
                d = 1
            e = 1
        except ZeroDivisionError:
            f = 1
        class D:
            b = 1
            c = 1 // (x - 1)
            d = 1
    """,
    0, 1, 2,
)  # fmt: skip
_add(
    "comprehensions",
    """
    def run(x):
        a = [
            1 // i
            for i in x
            if i != 5
        ]
        b = {i: j for i in a for j in range(i)}
        c = {i for i in b}
        d = sum(1 // (i - 2) for i in c)
        return a, b, c, d
    """,
    [], [1, 5], [0], [1, 0.3],
)  # fmt: skip
_add(
    "methods, properties and dunder methods",
    """
    class Bag:
        def __init__(self, items):
            self.__items = list(items)

        def __len__(self):
            return len(self.__items)

        def __bool__(self):
            if self.__items == [0]:
                raise ValueError("undecided")
            return True

        def __getattr__(self, name):
            raise AttributeError(name)

    def run(x):
        bag = Bag(x)
        y = 1
        if bag:
            y = len(bag)
        return y, getattr(bag, "n", None)
    """,
    [], [0], [1, 2],
)  # fmt: skip
_add(
    "docstrings and strings that are statements",
    '''
    """Module."""

    def run(x):
        """Function."""
        "a string"
        if x:
            "another"
        else:
            1
        return run.__doc__

    def only():
        """Nothing else."""

    def dots(): ...
    ''',
    0, 1,
)  # fmt: skip
_add(
    "future imports",
    '''
    """Doc."""
    from __future__ import annotations
    from __future__ import division

    def run(x: Missing) -> AlsoMissing:
        y: NotThere = 1
        return __doc__, run.__annotations__
    ''',
)
_add("a module that is empty but for run", "run = repr\n")
_add(
    "star imports, and imports in functions",
    """
    from string import *
    import os.path as p, sys

    def run(x):
        from os.path import join
        import json.decoder
        return join(digits, p.sep), json.__name__
    """,
)
_add(
    "annotations, del, augmented and starred assignment",
    """
    limit: int = 3
    name: str

    def run(x):
        a: int
        b: int = 1
        c, *d = [b, 2, 3]
        d[0] += 1
        del c
        x[0] = d
        x.append(*d)
        return x
    """,
    [1], [],
)  # fmt: skip
_add(
    "names that probes use elsewhere",
    """
    def run(x):
        error = path = state = 1
        return sorted(name for name in locals() if not name.startswith("__"))
    """,
)

# Generators and coroutines

_add(
    "a generator run to its end, closed, or left",
    """
    kept = []

    def gen(n):
        a = 1
        for i in range(n):
            b = i
            yield b
            c = i
        d = 1

    def run(x):
        g = gen(2)
        for _ in range(x):
            next(g, None)
        if x == 2:
            g.close()
        kept.append(g)
        return x
    """,
    0, 1, 2, 3,
)  # fmt: skip
_add(
    "a generator that catches what is thrown in",
    """
    def gen():
        while True:
            try:
                a = 1
                x = yield a
                b = 1
            except ValueError:
                c = 1
                yield "caught"
            except GeneratorExit:
                d = 1
                raise
            finally:
                e = 1

    def run(x):
        g = gen()
        next(g)
        if x == 0:
            g.close()
        elif x == 1:
            return g.throw(ValueError)
        elif x == 2:
            g.throw(KeyError("k"))
        else:
            g.send(3)
        return x
    """,
    0, 1, 2, 3,
)  # fmt: skip
_add(
    "yield from, and what it returns",
    """
    def inner(x):
        got = yield 1
        if got:
            return got
        return x

    def outer(x):
        a = 1
        b = yield from inner(x)
        c = 1
        return b

    def run(x):
        g = outer(x)
        next(g)
        if x == 0:
            return "suspended"
        try:
            g.send(x - 1)
        except StopIteration as end:
            return end.value
    """,
    0, 1, 2,
)  # fmt: skip
_add(
    "yield in the middle of statements",
    """
    kept = []

    def gen(x):
        a = 1
        if (yield 1) == x:
            b = 1
        c = [(yield 2), (yield 3)]
        with (yield 4):
            d = 1
        while (yield 5):
            e = 1
        for i in (yield 6):
            f = i
        match (yield 7):
            case 1 if (yield 8):
                g = 1
        return (yield 9)

    def run(x):
        from contextlib import nullcontext
        g = gen(x)
        kept.append(g)
        answers = [None, x, 0, 0, nullcontext(), 1, 0, [1], 1, 1, 1]
        got = []
        for answer in answers[:x]:
            got.append(g.send(answer))
        return got
    """,
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
)  # fmt: skip
_add(
    "async functions",
    """
    import asyncio

    class Cm:
        def __init__(self, swallow):
            self.swallow = swallow

        async def __aenter__(self):
            await asyncio.sleep(0)
            return self

        async def __aexit__(self, *args):
            await asyncio.sleep(0)
            return self.swallow

    async def ticks(n):
        for i in range(n):
            await asyncio.sleep(0)
            yield i

    async def work(x):
        found = [i async for i in ticks(x)]
        async for i in ticks(x):
            if i == 1:
                continue
            if i == 3:
                break
            found.append(i)
        else:
            found.append("else")
        async with Cm(x == 2) as cm:
            a = 1
            if x == 2 or x == 0:
                raise ValueError
            b = 1
        return found

    def run(x):
        try:
            return asyncio.run(work(x))
        except ValueError:
            return "error"
    """,
    0, 1, 2, 5,
)  # fmt: skip
_add(
    "a coroutine that is cancelled",
    """
    import asyncio

    async def work(x):
        a = 1
        try:
            b = 1
            await asyncio.sleep(x)
            c = 1
        except asyncio.CancelledError:
            d = 1
            raise
        finally:
            e = 1
        f = 1

    async def main(x):
        task = asyncio.ensure_future(work(x))
        await asyncio.sleep(0)
        if x:
            task.cancel()
        return await asyncio.gather(task, return_exceptions=True)

    def run(x):
        return [type(r) for r in asyncio.run(main(x))]
    """,
    0, 9,
)  # fmt: skip
_add(
    "coroutines and generators that are dropped half-way",
    """
    class Stop:
        def __await__(self):
            yield 1

    async def wait(x):
        a = 1
        async with Stop2() as s:
            b = 1
        c = 1

    class Stop2:
        async def __aenter__(self):
            await Stop()
            await Stop()

        async def __aexit__(self, *args):
            await Stop()

    kept = []

    def run(x):
        c = wait(x)
        kept.append(c)
        for _ in range(x):
            try:
                c.send(None)
            except StopIteration:
                return "done"
    """,
    1, 2, 3, 4,
)  # fmt: skip

# Lines

_add(
    "statements over many lines",
    """
    def run(x):
        y = '''a
        b
        ''' + str(
            1 // x
        )
        z = x \\
            + 1 \\
            + 1 // (x - 1)
        return dict(
            a=y,
            b=1 // (x - 2),
        )
    """,
    0, 1, 2, 3,
)  # fmt: skip
_add(
    "headers over many lines",
    """
    def run(x):
        a = 1
        if (
            1 // x
            > 5
        ):
            b = 1
        for i in range(
            1 // (x - 1)
        ):
            c = 1
        while (
            x < 3
            and 1 // (x - 2)
        ):
            x += 3
        return x
    """,
    0, 1, 2, 3,
)  # fmt: skip
_add(
    "comments and blank lines between",
    """

    # before

    def run(x):  # here

        # a comment
        if x:

            # another
            y = 1
        # between

        else:
            # and one more

            y = 2  # end
        # last

        return y
    """,
    0, 1,
)  # fmt: skip
_add(
    "destinations of branches: the next statement with code",
    """
    def run(x):
        for i in range(x):
            if i == 1:
                pass
            if i == 2:
                pass
            else:
                pass
            if i:
                y = 1
            else:
                global g
        if x == 2:
            try:
                y = 1
            finally:
                y = 2
        if x == 3:
            y = 3
        with open(__import__("os").devnull):
            if x:
                y = 4
        try:
            if x == 1:
                y = 5
        finally:
            if x == 2:
                y = 6
    """,
    0, 1, 2, 3,
)  # fmt: skip
_add(
    "a branch at the end of a loop in a try with finally",
    """
    def run(x):
        while x > 0:
            try:
                if x == 1:
                    x = 0
            except ValueError:
                pass
            else:
                if x == 5:
                    x = 3
            finally:
                x -= 1
                if x == 4:
                    x = 1
    """,
    0, 1, 3, 5,
)  # fmt: skip
_add(
    "module with control flow",
    """
    import sys
    if sys.version_info < (3,):
        old = True
    else:
        old = False
    for name in ("a", "b"):
        if name == "b":
            break
    else:
        name = "none"
    try:
        import not_there_at_all
    except ImportError:
        not_there_at_all = None
    with open(__import__("os").devnull) as f:
        pass
    while name:
        name = name[1:]
    match old:
        case True:
            kind = 1
        case False:
            kind = 2
    lines = [line for line in "abc"]
    if __name__ == "__main__":
        run(0)

    def run(x):
        return old
    """,
)
_add(
    "a module that fails while it is imported",
    """
    def run(x):
        return x
    a = 1
    b = 1 // 0
    c = 1
    """,
    1,
)

NEWER_PROGRAMS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "type parameters and type aliases": (
        """
        type Pair[T] = tuple[T, T]
        type Odd = int if Pair else str

        def first[T](pair: Pair[T]) -> T:
            type Local = list[T]
            if not pair:
                raise ValueError
            return pair[0]

        class Box[T]:
            def __init__(self, item: T):
                self.item = item

            def get[U](self, default: U) -> T | U:
                return self.item if self.item else default

        def run(x):
            type Inner = int if x else str
            return first(x), Box(x).get(3)
        """,
        ((1, 2), ()),
    ),
    "f-strings with anything in them": (
        """
        def run(x):
            y = f"{x!r:>{
                5
            }} {'a' if x else 'b'} {"nested"} {1 // x}"
            return y
        """,
        (0, 1),
    ),
}
"""For Python 3.12 and newer."""
