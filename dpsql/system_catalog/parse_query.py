"""A catalog query's text to its parse tree: SELECT, VALUES, TABLE, WITH and what is in FROM."""

from __future__ import annotations

from .errors import unsupported
from .parse_expression import ExpressionParser
from .parse_words import SET_WORDS, Words
from .syntax import (
    CallNode,
    Cte,
    Expression,
    FromItem,
    FunctionItem,
    JoinItem,
    LiteralNode,
    QueryItem,
    QueryNode,
    Select,
    SetOperationNode,
    Star,
    TableItem,
    ValuesNode,
)
from .tokens import read_tokens

__all__ = ["parse"]

_SIDES = ("left", "right", "full")


def parse(text: str) -> QueryNode:
    """Return the tree of one query. Raises CatalogRefusal: it is anything else, or a form that is not read."""
    parser = _Parser(Words(read_tokens(text)))
    query = parser.query()
    while parser.words.accept_sign(";"):
        pass
    if parser.words.peek().kind != "end":
        raise unsupported("words after the query")
    return query


class _Parser(ExpressionParser):
    def query(self) -> QueryNode:
        words = self.words
        words.deeper()
        ctes: list[Cte] = []
        is_recursive = False
        if words.accept("with"):
            is_recursive = words.accept("recursive")
            ctes.append(self._cte())
            while words.accept_sign(","):
                ctes.append(self._cte())
        query = self._finished(self._union(), tuple(ctes), is_recursive)
        words.shallower()
        return query

    def rest_of(self, left: QueryNode) -> QueryNode:
        """Return the query that begins with one in parentheses."""
        return self._finished(self._union(left), (), False)

    def _finished(
        self,
        body: Select | ValuesNode | SetOperationNode | QueryNode,
        ctes: tuple[Cte, ...],
        is_recursive: bool,
    ) -> QueryNode:
        words = self.words
        order = self.order_by()
        limit = offset = None
        while words.is_word("limit", "offset", "fetch"):
            if words.accept("limit"):
                limit = None if words.accept("all") else self.expression()
            elif words.accept("offset"):
                offset = self.expression()
                words.accept("rows")
                words.accept("row")
            else:
                limit = self._fetch()
        if isinstance(body, QueryNode) and not (ctes or order or limit or offset):
            return body
        return QueryNode(body, ctes, is_recursive, order, limit, offset)

    def _fetch(self) -> Expression:
        words = self.words
        words.expect("fetch")
        if not words.accept("first"):
            words.expect("next")
        limit: Expression = LiteralNode(1) if words.is_word("row", "rows") else self.primary()
        if not words.accept("rows"):
            words.expect("row")
        words.expect("only")
        return limit

    def _cte(self) -> Cte:
        words = self.words
        name = words.name()
        columns = words.names() if words.is_sign("(") else ()
        words.expect("as")
        if words.accept("not"):
            words.expect("materialized")
        else:
            words.accept("materialized")
        words.expect_sign("(")
        query = self.query()
        words.expect_sign(")")
        return Cte(name, columns, query)

    def _union(self, first: QueryNode | None = None) -> Select | ValuesNode | SetOperationNode | QueryNode:
        left = self._intersect(first)
        while self.words.is_word("union", "except"):
            operator = self.words.take().text
            left = self._combined(operator, left, self._intersect)
        return left

    def _intersect(
        self, first: QueryNode | None = None
    ) -> Select | ValuesNode | SetOperationNode | QueryNode:
        left = self._one() if first is None else first
        while self.words.accept("intersect"):
            left = self._combined("intersect", left, self._one)
        return left

    def _combined(self, operator: str, left: object, right: object) -> SetOperationNode:
        is_all = self.words.accept("all")
        self.words.accept("distinct")
        assert callable(right)
        return SetOperationNode(operator, is_all, _query(left), _query(right()))

    def _one(self) -> Select | ValuesNode | SetOperationNode | QueryNode:
        words = self.words
        if words.accept_sign("("):
            query = self.query()
            words.expect_sign(")")
            return query
        if words.accept("values"):
            rows = [self._listed()]
            while words.accept_sign(","):
                rows.append(self._listed())
            return ValuesNode(tuple(rows))
        if words.accept("table"):
            item = self._table()
            return Select(None, ((Star(), None),), (item,), None, (), None)
        words.expect("select")
        return self._select()

    def _listed(self) -> tuple[Expression, ...]:
        self.words.expect_sign("(")
        row = self.expressions()
        self.words.expect_sign(")")
        return row

    def _select(self) -> Select:
        words = self.words
        distinct: tuple[Expression, ...] | None = None
        if words.accept("distinct"):
            distinct = ()
            if words.accept("on"):
                distinct = self._listed()
        else:
            words.accept("all")
        items = []
        if not (words.is_word("from", "where") or words.is_sign(")") or words.peek().kind == "end"):
            items.append(self._item())
            while words.accept_sign(","):
                items.append(self._item())
        from_: list[FromItem] = []
        if words.accept("from"):
            from_.append(self._joined())
            while words.accept_sign(","):
                from_.append(self._joined())
        where = self.expression() if words.accept("where") else None
        group: tuple[Expression, ...] = ()
        if words.accept("group", "by"):
            group = self.expressions()
        having = self.expression() if words.accept("having") else None
        return Select(distinct, tuple(items), tuple(from_), where, group, having)

    def _item(self) -> tuple[Expression, str | None]:
        return self.expression_or_star(), self.words.alias()

    # --- FROM ----------------------------------------------------------------------------------------

    def _joined(self) -> FromItem:
        words = self.words
        left = self._from_item()
        while True:
            is_natural = words.accept("natural")
            if words.accept("cross", "join"):
                left = JoinItem(left, self._from_item(), "CROSS", None, None, False)
                continue
            kind = "INNER"
            if words.is_word(*_SIDES):
                kind = words.take().text.upper()
                words.accept("outer")
                words.expect("join")
            elif not (words.accept("inner", "join") or words.accept("join")):
                if is_natural:
                    raise unsupported("join expected")
                return left
            right = self._from_item()
            if is_natural:
                left = JoinItem(left, right, kind, None, None, True)
            elif words.accept("using"):
                left = JoinItem(left, right, kind, None, words.names(), False)
            else:
                words.expect("on")
                left = JoinItem(left, right, kind, self.expression(), None, False)

    def _from_item(self) -> FromItem:
        words = self.words
        is_lateral = words.accept("lateral")
        if words.is_sign("("):
            return self._in_parentheses(is_lateral)
        if words.accept("rows", "from"):
            words.expect_sign("(")
            call = self._function()
            words.expect_sign(")")
            return self._function_item(call)
        words.accept("only")
        ahead = 3 if words.is_sign(".", ahead=1) else 1
        if words.is_sign("(", ahead=ahead):
            return self._function_item(self._function())
        return self._table()

    def _in_parentheses(self, is_lateral: bool) -> FromItem:
        words = self.words
        words.expect_sign("(")
        if self._is_query():
            query = self.query()
        else:
            words.deeper()
            item = self._joined()
            words.shallower()
            if not isinstance(item, QueryItem) or item.alias is not None:
                words.expect_sign(")")
                return item
            query = self.rest_of(item.query) if words.is_word(*SET_WORDS) else item.query
        words.expect_sign(")")
        alias = words.alias()
        columns = words.names() if alias is not None and words.is_sign("(") else ()
        return QueryItem(query, alias, columns, is_lateral)

    def _function(self) -> CallNode:
        found = self.primary()
        if not isinstance(found, CallNode):
            raise unsupported("something else than a function in FROM")
        return found

    def _function_item(self, call: CallNode) -> FunctionItem:
        words = self.words
        has_ordinality = words.accept("with", "ordinality")
        alias = words.alias()
        columns = words.names() if alias is not None and words.is_sign("(") else ()
        return FunctionItem(call, alias, columns, has_ordinality)

    def _table(self) -> TableItem:
        words = self.words
        schema, name = None, words.name()
        if words.accept_sign("."):
            schema, name = name, words.any_name()
            if words.accept_sign("."):
                schema, name = name, words.any_name()
        words.accept_sign("*")
        alias = words.alias()
        columns = words.names() if alias is not None and words.is_sign("(") else ()
        return TableItem(schema, name, alias, columns)


def _query(body: object) -> QueryNode:
    if isinstance(body, QueryNode):
        return body
    assert isinstance(body, (Select, ValuesNode, SetOperationNode))
    return QueryNode(body)
