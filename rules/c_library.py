"""Callees of C and C++ programs that carry no derivative: output, text, the run-time support of C++.

As everywhere, what can hand a number back (`sscanf`, `fread`) has no entry: a program that uses it with active memory
is refused.
"""

from __future__ import annotations

from typing import Final

from irad.ruleset.define import inactive
from irad.ruleset.interface import Effects, Inactive, Origin, Rule


def _memory(reads: tuple[int, ...] = (), writes: tuple[int, ...] = ()) -> Effects:
    return Effects(frozenset(reads), frozenset(writes), writes_no_floats=True)


_INSIDE: Final = Effects(reads=frozenset({0}), result=Origin.ARGUMENT, result_argument=0, other=False)

_C: Final = (
    inactive(
        "fprintf vprintf vfprintf dprintf putc fputc_unlocked fopen fclose fseek ftell perror setlocale", "output"
    ),
    inactive("vsnprintf vsprintf", "text", _memory(writes=(0,))),
    inactive("__sprintf_chk __snprintf_chk", "text", _memory(writes=(0,))),
    inactive("__printf_chk __fprintf_chk", "output"),
    inactive(
        "strcpy strncpy strcat strncat",
        "text",
        Effects(frozenset({1}), frozenset({0}), result=Origin.ARGUMENT, result_argument=0, writes_no_floats=True),
    ),
    inactive("strchr strrchr memchr strstr", "a position in text", _INSIDE),
    inactive("strnlen strspn strcspn atoi atol atoll", "text", Effects(reads=frozenset({0}), other=False)),
    inactive("strcasecmp strncasecmp strcoll", "a comparison", Effects(reads=frozenset({0, 1}), other=False)),
    inactive("isalpha isdigit isspace isalnum isupper islower toupper tolower", "a character", Effects(other=False)),
    inactive(
        "clock_gettime gettimeofday", "the result comes from the system, not from the arguments", _memory(writes=(0, 1))
    ),
    inactive(
        "drand48 lrand48 srand srand48 getenv sysconf", "the result comes from the system, not from the arguments"
    ),
    inactive(
        "quick_exit _Exit longjmp _longjmp siglongjmp __stack_chk_fail __fortify_fail __chk_fail", "it does not return"
    ),
    inactive("pthread_mutex_lock pthread_mutex_unlock pthread_self", "order among threads"),
    inactive("llvm.stacksave.* llvm.stackrestore.* llvm.stacksave llvm.stackrestore", "the stack pointer"),
    inactive("llvm.eh.typeid.for llvm.eh.typeid.for.*", "the identifier of a type", Effects(other=False)),
)

_THROW: Final = (
    "_ZSt17__throw_bad_allocv _ZSt20__throw_length_errorPKc _ZSt20__throw_out_of_rangePKc "
    "_ZSt24__throw_out_of_range_fmtPKcz _ZSt28__throw_bad_array_new_lengthv _ZSt19__throw_logic_errorPKc "
    "_ZSt25__throw_bad_function_callv _ZSt24__throw_invalid_argumentPKc _ZSt20__throw_domain_errorPKc "
    "_ZSt19__throw_range_errorPKc _ZSt21__throw_runtime_errorPKc _ZSt20__throw_overflow_errorPKc "
    "_ZSt16__throw_bad_castv _ZSt21__throw_bad_exceptionv _ZSt20__throw_system_errori "
    "_ZSt26__throw_bad_variant_accessPKc _ZSt27__throw_bad_optional_accessv"
)

_CXX: Final = (
    inactive(f"{_THROW} _ZSt9terminatev __clang_call_terminate __cxa_pure_virtual __cxa_throw_bad_array_new_length "
             "__cxa_bad_cast __cxa_bad_typeid __cxa_throw __cxa_rethrow __cxa_call_unexpected", "it does not return"),
    inactive("__cxa_allocate_exception __cxa_begin_catch", "an exception", Effects(result=Origin.FRESH)),
    inactive("__cxa_free_exception __cxa_end_catch __cxa_get_exception_ptr", "an exception"),
    inactive("__cxa_guard_acquire __cxa_guard_release __cxa_guard_abort __cxa_atexit __cxa_thread_atexit",
             "static variables are initialised once"),
    Inactive(
        ("_ZNSt7__cxx1112basic_stringIc*", "_ZNKSt7__cxx1112basic_stringIc*", "_ZNSs*", "_ZNKSs*"),
        "text",
        None,
    ),
    Inactive(
        ("_ZNSo*", "_ZNSolsE*", "_ZStlsISt11char_traits*", "_ZNSt8ios_base*", "_ZSt4endlIc*", "_ZSt16__ostream_insert*",
         "_ZSt5flushIc*", "_ZNSt9basic_iosIc*"),
        "output",
        None,
    ),
    Inactive(
        ("_ZNSt12domain_error*", "_ZNSt13runtime_error*", "_ZNSt11logic_error*", "_ZNSt12length_error*",
         "_ZNSt12out_of_range*", "_ZNSt16invalid_argument*", "_ZNSt9exception*", "_ZNSt14overflow_error*",
         "_ZNSt11range_error*", "_ZNSt15underflow_error*"),
        "an exception",
        None,
    ),
)  # fmt: skip

RULES: Final[tuple[Rule, ...]] = (*_C, *_CXX)
