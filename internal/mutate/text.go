package main

import (
	"go/ast"
	"go/token"
)

func (x *finder) offset(p token.Pos) int { return x.source.module.set.Position(p).Offset }

func (x *finder) text(n ast.Node) string {
	return string(x.file.text[x.offset(n.Pos()):x.offset(n.End())])
}

// header is an if's statement and condition.
func (x *finder) header(init ast.Stmt, cond ast.Expr) string {
	if init == nil {
		return x.text(cond)
	}
	return x.text(init) + "; " + x.text(cond)
}

// brief is a statement without its body.
func (x *finder) brief(s ast.Stmt) string {
	switch s := s.(type) {
	case *ast.IfStmt:
		return "if " + x.header(s.Init, s.Cond)
	case *ast.ForStmt:
		return string(x.file.text[x.offset(s.Pos()):x.offset(s.Body.Pos())])
	case *ast.RangeStmt:
		return string(x.file.text[x.offset(s.Pos()):x.offset(s.Body.Pos())])
	}
	return x.text(s)
}
