package main

import (
	"fmt"
	"go/ast"
	"go/token"
)

// condition is the mutants of a whole condition. Those of a dropped operand are
// harder to catch than some of these, which are left out then.
func (x *finder) condition(e ast.Expr, init ast.Stmt, both bool) {
	if x.constant(e) {
		x.skipped["constant condition"]++
		return
	}
	op := token.ILLEGAL
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok {
		op = b.Op
	}
	text := x.header(init, e)
	if both && op != token.LAND {
		x.wrap(x.add(madeTrue, e.Pos(), e.End(), text), e, "(# || (", "))")
	}
	if op != token.LOR {
		x.wrap(x.add(madeFalse, e.Pos(), e.End(), text), e, "(!# && (", "))")
	}
}

// operands drops each operand of && and ||.
func (x *finder) operands(b *ast.BinaryExpr) {
	if b.Op != token.LAND && b.Op != token.LOR {
		return
	}
	for _, e := range []ast.Expr{b.X, b.Y} {
		if inner, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && inner.Op == b.Op {
			continue // its own operands are dropped
		}
		if x.constant(e) {
			x.skipped["constant condition"]++
			continue
		}
		m := x.add(dropped, e.Pos(), e.End(), x.text(e))
		if b.Op == token.LAND {
			x.wrap(m, e, "(# || (", "))")
		} else {
			x.wrap(m, e, "(!# && (", "))")
		}
	}
}

// bound moves an ordered comparison by one.
func (x *finder) bound(b *ast.BinaryExpr) {
	equal := fmt.Sprintf("(%s) == (%s)", x.text(b.X), x.text(b.Y))
	after := ""
	switch b.Op {
	case token.LSS, token.GTR:
		after = " || # && " + equal + ")"
	case token.LEQ, token.GEQ:
		after = " && !(# && " + equal + "))"
	default:
		return
	}
	if x.constant(b) {
		return
	}
	if x.acts(b) {
		x.skipped["comparison of calls"]++ // it would call twice
		return
	}
	x.wrap(x.add(bound, b.Pos(), b.End(), x.text(b)), b, "(", after)
}

func (x *finder) constant(e ast.Expr) bool { return x.info().Types[e].Value != nil }
