"""What annotations say of values."""

from __future__ import annotations

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.sites.classindex import ClassIndex
from sgl_graph.analyzer.static.sites.scopes import Scope
from sgl_graph.analyzer.static.sites.tags import NONE, Tags, contained, last_name

_UNIONS = {"Optional", "Union", "Annotated", "ClassVar", "Final", "Required"}
_CONTAINERS = {
    "List", "list", "Dict", "dict", "Tuple", "tuple", "Set", "set", "Sequence", "Iterable", "Iterator", "Mapping",
    "MutableMapping", "ContextVar", "DefaultDict", "defaultdict", "OrderedDict", "Deque", "deque", "Generator", "Collection",
}  # fmt: skip


class Annotations(ClassIndex):
    """Reads annotations as tags of instances."""

    #: Expressions made here; results are kept by identity, so that what they stand for must stay alive.
    _keep: list[Expression]

    def annotation(self, scope: Scope, item: Expression) -> Tags:
        """What a value annotated so may be."""
        operation = item[0]
        if operation == "v":
            return self._text_annotation(scope, item[1]) if isinstance(item[1], str) else NONE
        if operation == "b":
            return self.annotation(scope, item[2]) | self.annotation(scope, item[3])
        if operation == "s":
            head = last_name(item[1])
            inner = item[2][0][1] if len(item[2]) == 1 and item[2][0][0] == "t" else item[2]
            if head in _UNIONS:
                return frozenset().union(*(self.annotation(scope, part) for part in inner))
            if head in _CONTAINERS and inner:
                return contained(self.annotation(scope, inner[-1]))
            if head == "Callable":
                return NONE
            if head in ("Type", "type"):
                return frozenset(t.replace("obj:", "class:", 1) for t in self.annotation(scope, inner[0]))
            return self.annotation(scope, item[1])
        if operation in ("n", "a"):
            found = set()
            for tag in self.evaluate(scope, item):
                if tag.startswith("class:"):
                    found.add("obj:" + tag[6:])
                elif ":" not in tag and not tag.startswith(("[]", "typing.")) and not tag.endswith(")"):
                    found.add(tag + "()")
            return frozenset(found)
        return NONE

    def _text_annotation(self, scope: Scope, text: str) -> Tags:
        found: set[str] = set()
        for part in text.split("|"):
            name = part.strip().removeprefix("Optional[").removesuffix("]").strip()
            if name.replace(".", "").isidentifier():
                pieces = name.split(".")
                item: Expression = ["n", pieces[0]]
                for piece in pieces[1:]:
                    item = ["a", item, piece, 0]
                self._keep.append(item)
                found |= self.annotation(scope, item)
        return frozenset(found)
