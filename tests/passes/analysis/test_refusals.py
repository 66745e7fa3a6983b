from __future__ import annotations

import pytest

from irad.errors import ActivityError, IradError, NoRuleError, UnsupportedError, UnsupportedProgram
from tests.passes.units import DOUBLES, INTEGERS, POINTERS, unit_of

DECLARE = """
declare double @mystery(double)
declare ptr @find(ptr)
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, ptr %b, i1 %c, double %k) {
"""


def refusal(body: str, kinds: str = "scsccc", memory=(DOUBLES, POINTERS, DOUBLES, DOUBLES, None, None)) -> IradError:
    with pytest.raises(IradError) as caught:
        unit_of(DECLARE + body + "\n  ret i32 0\n}", kinds, list(memory))
    return caught.value


def accepted(body: str, kinds: str = "scsccc", memory=(DOUBLES, POINTERS, DOUBLES, DOUBLES, None, None)) -> None:
    unit_of(DECLARE + body + "\n  ret i32 0\n}", kinds, list(memory))


UNKNOWN_CALL = """
  %x = load double, ptr %a
  %y = call double @mystery(double %x)
  store double %y, ptr %r
"""


def test_a_call_without_rule():
    error = refusal(UNKNOWN_CALL)
    assert isinstance(error, NoRuleError)
    assert "no derivative rule for a call to mystery" in str(error)
    assert "inactive" in error.remedy
    assert error.instruction is not None


def test_an_unknown_call_of_constants_is_fine():
    accepted("  %y = call double @mystery(double %k)\n  store double %y, ptr %r")


def test_an_unknown_call_on_an_error_path_is_fine():
    text = """
    declare void @mystery(double)
    define i32 @f(ptr noalias %r, double %x) {
    entry:
      %bad = fcmp olt double %x, 0.0
      br i1 %bad, label %raise, label %fine
    raise:
      call void @mystery(double %x)
      br label %end
    fine:
      store double %x, ptr %r
      br label %end
    end:
      %status = phi i32 [ 1, %raise ], [ 0, %fine ]
      ret i32 %status
    }"""
    unit_of(text, "sa")
    with pytest.raises(NoRuleError):
        unit_of(text.replace("[ 1, %raise ]", "[ 0, %raise ]"), "sa")


def test_memory_of_unknown_origin():
    error = refusal("  %p = call ptr @find(ptr %b)\n  %x = load double, ptr %a\n  store double %x, ptr %p\n"
                    "  %y = load double, ptr %p\n  store double %y, ptr %r")  # fmt: skip
    assert isinstance(error, UnsupportedError)
    assert "whose origin irad cannot trace" in str(error)


def test_memory_of_unknown_origin_that_is_not_read_again():
    """Somebody else may read it."""
    error = refusal("  %p = call ptr @find(ptr %b)\n  %x = load double, ptr %a\n  store double %x, ptr %p\n"
                    "  store double %x, ptr %r")  # fmt: skip
    assert "whose origin irad cannot trace" in str(error)


def test_constant_memory_as_scratch():
    body = """
      %x = load double, ptr %a
      store double %x, ptr %b
      %y = load double, ptr %b
      store double %y, ptr %r
    """
    error = refusal(body)
    assert isinstance(error, ActivityError)
    assert "passed as constant" in str(error)
    assert "Duplicated" in error.remedy


@pytest.mark.parametrize(
    "update",
    [
        "%o = atomicrmw fadd ptr %a, double 1.0 seq_cst",
        "%o = atomicrmw xchg ptr %a, double %k seq_cst",
        "%o = atomicrmw xchg ptr %a, i64 0 seq_cst",
        "%o = cmpxchg ptr %a, i64 0, i64 1 seq_cst seq_cst",
        "%o = atomicrmw or ptr %a, i32 1 seq_cst",
        "%half = getelementptr i8, ptr %a, i64 4\n  %o = atomicrmw or ptr %half, i32 1 seq_cst",
    ],
)
def test_atomic_updates_of_active_memory(update):
    read = "\n  %x = load double, ptr %a\n  store double %x, ptr %r"
    assert "atomic update" in str(refusal(update + read))
    accepted(update.replace("%a", "%b") + read)


@pytest.mark.parametrize(
    "update",
    [
        "%o = atomicrmw fadd ptr %b, double %x seq_cst",
        "%bits = bitcast double %x to i64\n  %o = cmpxchg ptr %b, i64 0, i64 %bits seq_cst seq_cst",
        "%bits = bitcast double %x to i64\n  %o = atomicrmw xchg ptr %b, i64 %bits seq_cst",
    ],
)
def test_active_numbers_put_somewhere_by_an_atomic_update(update):
    assert "integer" in (text := str(refusal("%x = load double, ptr %a\n  " + update))) or "atomic update" in text


def test_numbers_handed_to_a_function_that_takes_integers():
    memory = [DOUBLES, POINTERS, DOUBLES, INTEGERS, None, None]
    text = f"declare void @irad.mpi.plain.send(ptr)\n{DECLARE}  call void @irad.mpi.plain.send(ptr %a)\n  ret i32 0\n}}"
    with pytest.raises(UnsupportedError, match="as integers"):
        unit_of(text, "scsccc", memory)
    unit_of(text.replace("send(ptr %a)", "send(ptr %b)"), "scsccc", memory)


@pytest.mark.parametrize("zero", ["double 0.0", "i64 0"])
def test_an_atomic_update_that_takes_a_number_out(zero):
    """Only the update reads the variable, so that nothing else shows that the result depends on it."""
    kind = zero.split()[0]
    body = f"""
      %l = alloca double
      %x = load double, ptr %a
      store double %x, ptr %l
      %o = atomicrmw xchg ptr %l, {zero} seq_cst
      %y = bitcast {kind} %o to double
      store double %y, ptr %r
    """
    assert "atomic update" in str(refusal(body))
    accepted(body, kinds="sccccc")


@pytest.mark.parametrize(
    "update", ["atomicrmw xchg ptr %l, ptr %a seq_cst", "cmpxchg ptr %l, ptr null, ptr %a seq_cst seq_cst"]
)
def test_an_atomic_update_of_a_pointer(update):
    body = f"""
      %l = alloca ptr
      store ptr null, ptr %l
      %o = {update}
      %p = load ptr, ptr %l
      %x = load double, ptr %p
      store double %x, ptr %r
    """
    assert "atomic update" in str(refusal(body))
    accepted(body, kinds="sccccc")


def test_a_pointer_taken_out_by_an_atomic_update():
    body = """
      %l = alloca ptr
      store ptr %a, ptr %l
      %p = atomicrmw xchg ptr %l, ptr null seq_cst
      %x = load double, ptr %p
      store double %x, ptr %r
    """
    assert "atomic update" in str(refusal(body))
    accepted(body, kinds="sccccc")


def test_an_atomic_update_of_a_counter_is_fine():
    accepted("  %o = atomicrmw add ptr %b, i64 1 seq_cst\n  %x = load double, ptr %a\n  store double %x, ptr %r",
             memory=(DOUBLES, POINTERS, DOUBLES, INTEGERS, None, None))  # fmt: skip


@pytest.mark.parametrize(
    "packed",
    [
        "%v = insertelement <2 x ptr> zeroinitializer, ptr %a, i32 0\n  store <2 x ptr> %v, ptr %l",
        "store ptr %a, ptr %m\n  %v = load i128, ptr %m\n  store i128 %v, ptr %l",
    ],
)
def test_a_pointer_within_a_packed_value(packed):
    body = f"""
      %l = alloca [2 x ptr]
      %m = alloca [2 x ptr]
      {packed}
      %p = load ptr, ptr %l
      %x = load double, ptr %p
      store double %x, ptr %r
    """
    assert "packed value" in str(refusal(body))
    accepted(body, kinds="sccccc")


def test_a_number_among_variable_arguments():
    body = "  %x = va_arg ptr %a, double\n  %y = fmul double %x, %k\n  store double %y, ptr %r"
    assert "a variable argument that is a floating-point number" in refusal(body).problem
    accepted("  %n = va_arg ptr %b, i64\n  %y = sitofp i64 %n to double\n  store double %y, ptr %r")


def test_several_at_once():
    error = refusal(UNKNOWN_CALL + "%o = atomicrmw fadd ptr %a, double 1.0 seq_cst")
    assert isinstance(error, UnsupportedProgram)
    assert [type(e) for e in error.errors] == [NoRuleError, UnsupportedError]
    assert "(2)" in str(error)


def test_an_irreducible_loop():
    text = """
    define i32 @f(ptr noalias %r, double %x, i1 %c) {
    entry:
      br i1 %c, label %one, label %two
    one:
      br i1 %c, label %two, label %end
    two:
      br label %one
    end:
      store double %x, ptr %r
      ret i32 0
    }"""
    with pytest.raises(UnsupportedError, match="more than one entry"):
        unit_of(text, "sac")


def test_a_switch_does_not_belong_to_the_normal_form():
    text = """
    define i32 @f(ptr noalias %r, double %x, i32 %n) {
    entry:
      switch i32 %n, label %end [ i32 1, label %one ]
    one:
      br label %end
    end:
      store double %x, ptr %r
      ret i32 0
    }"""
    with pytest.raises(UnsupportedError, match="kind of branch"):
        unit_of(text, "sac")


def test_a_store_to_local_memory_that_nobody_reads_again_is_fine():
    accepted("  %x = load double, ptr %a\n  %l = alloca double\n  store double %x, ptr %l\n  store double %x, ptr %r")


def test_a_container_of_unknown_make():
    """A typed list: numbers go in and come out through slots, the list itself is a pointer out of a slot."""
    text = """
    declare i32 @list_new(ptr)
    declare i32 @list_append(ptr, ptr)
    declare i32 @list_get(ptr, ptr)
    define i32 @f(ptr noalias %r, double %x) {
      %list = alloca ptr
      %item = alloca double
      %out = alloca double
      %s1 = call i32 @list_new(ptr %list)
      %l = load ptr, ptr %list
      store double %x, ptr %item
      %s2 = call i32 @list_append(ptr %l, ptr %item)
      %m = load ptr, ptr %list
      %s3 = call i32 @list_get(ptr %m, ptr %out)
      %y = load double, ptr %out
      store double %y, ptr %r
      ret i32 0
    }"""
    with pytest.raises(UnsupportedError, match="no derivative rule for a call to list_append"):
        unit_of(text, "sa")
    unit_of(text, "sc")
    unit_of(text.replace("store double %y, ptr %r", "store double %x, ptr %r"), "sa")


def test_a_number_that_comes_back_as_a_python_object():
    text = """
    declare ptr @PyFloat_FromDouble(double)
    declare double @PyFloat_AsDouble(ptr)
    define i32 @f(ptr noalias %r, double %x) {
      %o = call ptr @PyFloat_FromDouble(double %x)
      %y = call double @PyFloat_AsDouble(ptr %o)
      store double %y, ptr %r
      ret i32 0
    }"""
    with pytest.raises(NoRuleError, match="Python code"):
        unit_of(text, "sa")
    unit_of(text.replace("store double %y, ptr %r", "store double %x, ptr %r"), "sa")
