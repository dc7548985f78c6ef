package main

import (
	"go/ast"
	"go/token"
	"go/types"
)

// acts tells whether n, functions in it left out, calls anything that may do more than
// compute, sends or receives.
func (x *finder) acts(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.SendStmt, *ast.GoStmt:
			found = true
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		case *ast.CallExpr:
			found = found || !x.pure(n)
		}
		return !found
	})
	return found
}

// pure tells whether a call is a conversion or one of the functions that do nothing.
func (x *finder) pure(c *ast.CallExpr) bool {
	if x.info().Types[c.Fun].IsType() {
		return true
	}
	if id, ok := ast.Unparen(c.Fun).(*ast.Ident); ok {
		if _, builtin := x.info().Uses[id].(*types.Builtin); builtin {
			switch id.Name {
			case "close", "panic", "copy", "delete", "clear":
				return false
			}
			return true
		}
	}
	switch x.callee(c) {
	case "errors.Is", "errors.New", "errors.Join", "fmt.Errorf", "fmt.Sprintf", "time.Duration", "context.Cause":
		return true
	}
	return false
}

// callee is the called function as written.
func (x *finder) callee(e ast.Expr) string {
	if c, ok := e.(*ast.CallExpr); ok {
		return x.text(c.Fun)
	}
	return ""
}

func blank(l []ast.Expr) bool {
	for _, e := range l {
		if id, ok := e.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return true
}

// terminates tells whether nothing behind s is reached, as the language defines it for
// the statements that are guarded. It says so of every for without a condition.
func terminates(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BlockStmt:
		return len(s.List) > 0 && terminates(s.List[len(s.List)-1])
	case *ast.IfStmt:
		return s.Else != nil && terminates(s.Body) && terminates(s.Else)
	case *ast.ForStmt:
		return s.Cond == nil
	case *ast.ExprStmt:
		c, ok := s.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		id, ok := c.Fun.(*ast.Ident)
		return ok && id.Name == "panic"
	}
	return false
}
