"""The tree that facts are made of lacks nothing that they need, and leaves libcst as it was."""

from __future__ import annotations

import threading
from pathlib import Path

import libcst as cst
import pytest
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract import lower, tree

ROOT = Path(__file__).parents[3]
#: Each construct that facts tell of, with blanks, comments and brackets in most places that may have them.
PROGRAM = b'''
"""Words."""
from __future__ import annotations
import a , b.c as d ;  import e
from . import (f , g as h ,)
from ..i.j import *
@ deco . rate ( 1 , k = 2 )
class C ( Base , metaclass = Meta , ** kw ) :  # comment
    x : int = 0
    y : str
    def method ( self , p , / , n , o = 1 , * rest : int , k : str = "s" , ** more ) -> None : pass
async def coroutine ( * , only ) :
    async with lock ( ) as ( held , other ) , plain : await only . run ( * only , ** only )
    async for q in stream ( ) : yield q
    else :
        yield from ( z for z in q if z if not z for w in z )
    return
def body ( v ) :
    global G ; nonlocal_ = 3
    def inner ( ) :
        nonlocal nonlocal_
        nonlocal_ += 1 ; nonlocal_ @= 2 ; nonlocal_ //= 3
        return lambda a , * b , c = 1 , ** d : ( yield a )
    if v < 1 <= 2 != 3 is not None : return 1 , * v
    elif not v in [ 1 , * v , ] and v not in { 1 , 2 } or v is None : del v [ 0 ] , v . a
    else : raise E ( "x" ) from v
    while ( n := v - - 1 ) : n = 1 ; break
    else : assert v , "message"
    for i , ( j , * k ) in { "a" : 1 , ** v } . items ( ) : continue
    try : v = w = ~ v ** 2 << 1 >> 2 & 3 | 4 ^ 5 % 6
    except ( A , B ) as error : raise
    except C : ...
    except : pass
    else : pass
    finally : v [ 1 : 2 , : : 3 , ... ] = -1.5 if v else 1_000 , 0x10 , 2j , +1
    try : pass
    except * G as group : print ( f"{v!r:>{w}} text {v . a}" "plain" f'{ v [ 0 ] }' , r"\\d" "\\n" , b"\\x00" , "\\ud800" )
    return { a : b for a , b in v } , { a for a in v } , [ a async for a in v ]
def matching ( m , n ) :
    match m , n :
        case 1 , "a" | "b" : return 1
        case [ x , * rest ] if x > 1 : return rest
        case ( 1 , _ ) as whole : return whole
    match m :
        case { "k" : Point ( x = 0 , y = other ) , ** left } : return left
        case Point ( first , Sub ( ) as second ) | None : return first
        case [ a , ( b , * _ ) ] | a . b : return a
        case -1 | True | str ( ) : return 0
        case _ : return m
'''


def whole(source: bytes, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Facts by all that libcst tells of a file."""
    with monkeypatch.context() as patch:
        patch.setattr(lower, "parse", cst.parse_module)
        return f.encode_module(lower.extract(source))


def test_facts_are_those_of_the_whole_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lower.extract(PROGRAM)
    assert found.error is None
    assert f.encode_module(found) == whole(PROGRAM, monkeypatch)


@pytest.mark.parametrize("folder", ["fixtures/miniserve", "analyzer/static/extract"])
def test_facts_of_real_files_are_those_of_the_whole_tree(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [file.read_bytes() for file in sorted((ROOT / folder).rglob("*.py"))]
    assert files
    for source in files:
        assert f.encode_module(lower.extract(source)) == whole(source, monkeypatch)


def test_names_that_patterns_capture_are_bound_in_order() -> None:
    (matching,) = (function for function in lower.extract(PROGRAM).functions if function.name == "matching")
    assert matching.locals == ["m", "n", "x", "rest", "whole", "other", "left", "first", "second", "a", "b"]


def test_only_what_facts_need_is_made() -> None:
    (function,) = tree.parse(b"def f(a): pass  # why\n").body
    assert isinstance(function, cst.FunctionDef)
    assert isinstance(function.body, cst.SimpleStatementSuite)
    assert not hasattr(function.body, "trailing_whitespace")


@pytest.mark.parametrize("source", [b"a = 1\n", b"a = (\n"])
def test_libcst_is_left_as_it_was(source: bytes) -> None:
    before = dict(vars(cst))
    lower.extract(source)
    assert vars(cst) == before
    assert cst.parse_module("a  =  1 # b\n").code == "a  =  1 # b\n"


def test_parses_in_threads_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = whole(PROGRAM, monkeypatch)
    before = dict(vars(cst))
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.extend(f.encode_module(lower.extract(PROGRAM)) for _ in range(10)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {expected} and len(found) == 40
    assert vars(cst) == before


def test_a_libcst_whose_nodes_have_no_slots_makes_them_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = lower.extract(PROGRAM)
    tree._constructors.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setitem(tree._FIELDS, "Name", "value of_another_release")
            assert hasattr(tree.parse(b"a\n"), "header")
            assert f.encode_module(lower.extract(PROGRAM)) == f.encode_module(expected)
    finally:
        tree._constructors.cache_clear()


def test_half_a_character_is_not_known() -> None:
    assert lower.extract(b'a = "\\ud800"\n').body[0][3] == ["x"]
