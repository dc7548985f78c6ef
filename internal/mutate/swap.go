package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// swap lets b happen before a.
func (x *finder) swap(a, b ast.Stmt) {
	if !x.movable(a) || !x.movable(b) || !x.acts(a) && !x.acts(b) {
		return
	}
	if x.independent(a, b) || x.independent(b, a) {
		x.skipped["order that can't matter"]++
		return
	}
	_, _, lockA := x.lockCall(a)
	_, _, lockB := x.lockCall(b)
	if lockA || lockB {
		x.skipped["a lock and its neighbour"]++ // a test that needs the lock at all catches unlock
		return
	}
	if x.signals(a) && x.locked(a) || x.signals(b) && x.locked(b) {
		x.skipped["a signal under a lock"]++
		return
	}
	m := x.add(swapped, a.Pos(), b.End(), x.brief(a)+" <-> "+x.brief(b))
	x.edits.insert(m.Number, x.offset(a.Pos()), fmt.Sprintf("if leatmutant.On(%d) { %s }; ", m.Number, x.text(b)))
	x.wrap(m, b, "if !# { ", " }")
}

// movable tells whether s may change places: it declares nothing that lives on, and
// does not end its block.
func (x *finder) movable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		name := x.callee(s.X)
		return name != "panic" && name != "runtime.KeepAlive"
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt:
		return true
	case *ast.IfStmt, *ast.RangeStmt, *ast.ForStmt:
		if s, ok := s.(*ast.IfStmt); ok && x.constant(s.Cond) {
			return false
		}
		labels := false
		ast.Inspect(s, func(n ast.Node) bool {
			_, label := n.(*ast.LabeledStmt)
			labels = labels || label
			return true
		})
		return !labels && !terminates(s)
	}
	return false
}

// independent tells whether a is a plain assignment to a local variable that b does
// not name.
func (x *finder) independent(a, b ast.Stmt) bool {
	var targets []ast.Expr
	switch a := a.(type) {
	case *ast.AssignStmt:
		targets = a.Lhs
	case *ast.IncDecStmt:
		targets = []ast.Expr{a.X}
	default:
		return false
	}
	if x.acts(a) {
		return false
	}
	for _, t := range targets {
		id, ok := t.(*ast.Ident)
		if !ok {
			return false
		}
		if id.Name != "_" && names(b, id.Name) {
			return false
		}
	}
	return true
}

// signals tells whether s wakes who waits for a sync.Cond.
func (x *finder) signals(s ast.Stmt) bool {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	name := x.callee(e.X)
	return strings.HasSuffix(name, ".Signal") || strings.HasSuffix(name, ".Broadcast")
}

// communication makes a select's case impossible.
func (x *finder) communication(c *ast.CommClause) {
	var channel ast.Expr
	switch s := c.Comm.(type) {
	case *ast.SendStmt:
		channel = s.Chan
	case *ast.ExprStmt:
		channel = received(s.X)
	case *ast.AssignStmt:
		channel = received(s.Rhs[0])
	}
	if channel == nil {
		return // default
	}
	m := x.add(noCase, c.Comm.Pos(), c.Comm.End(), x.text(c.Comm))
	x.wrap(m, channel, fmt.Sprintf("leatmutant.Without(%d, ", m.Number), ")")
}

func received(e ast.Expr) ast.Expr {
	if u, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && u.Op == token.ARROW {
		return u.X
	}
	return nil
}
