package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path"
	"strings"
)

// A finder collects the mutants of one file.
type finder struct {
	source  *source
	file    *file
	pkg     string // as Mutant.Package
	mutants []*Mutant
	edits   edits
	skipped map[string]int // reason → mutants not made

	first int // number of the file's first mutant
	fn    string
	locks map[string]*lockUse // of the function, by mutex
	lone  map[ast.Stmt]bool   // the only statement of an if: false deletes it as well
}

// find returns the mutants of f, numbered from first.
func find(s *source, f *file, pkg string, first int, skipped map[string]int) ([]*Mutant, edits) {
	x := &finder{source: s, file: f, pkg: pkg, first: first, skipped: skipped, lone: map[ast.Stmt]bool{}}
	for _, d := range f.tree.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
			x.function(d)
		}
	}
	nth := map[string]int{}
	for _, m := range x.mutants {
		nth[m.Key()]++
		m.Nth = nth[m.Key()]
	}
	return x.mutants, x.edits
}

func (x *finder) function(d *ast.FuncDecl) {
	x.fn = d.Name.Name
	if d.Recv != nil {
		recv := d.Recv.List[0].Type
		star := ""
		if p, ok := recv.(*ast.StarExpr); ok {
			recv, star = p.X, "*"
		}
		if generic, ok := recv.(*ast.IndexExpr); ok {
			recv = generic.X
		}
		x.fn = fmt.Sprintf("(%s%s).%s", star, x.text(recv), d.Name.Name)
	}
	x.locks = map[string]*lockUse{}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		if s, ok := n.(ast.Stmt); ok {
			x.noteLock(s)
		}
		return true
	})
	x.body(d.Type, d.Body)
	for _, mutex := range sortedKeys(x.locks) {
		x.unlock(mutex, x.locks[mutex])
	}
}

// body visits a function's statements, and those of the functions in it.
func (x *finder) body(t *ast.FuncType, b *ast.BlockStmt) {
	ast.Inspect(b, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			x.body(n.Type, n.Body)
			return false
		case *ast.BlockStmt:
			x.list(n.List)
		case *ast.CaseClause:
			x.list(n.Body)
		case *ast.CommClause:
			x.communication(n)
			x.list(n.Body)
		case *ast.IfStmt:
			if n.Else == nil && len(n.Body.List) == 1 {
				x.lone[n.Body.List[0]] = true
			}
			x.condition(n.Cond, n.Init, true)
			if v := x.info().Types[n.Cond].Value; v != nil && !constant.BoolVal(v) {
				return false // compiled by other tags
			}
		case *ast.ForStmt:
			if n.Cond != nil {
				x.condition(n.Cond, nil, false)
			}
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, c := range n.Body.List {
					for _, e := range c.(*ast.CaseClause).List {
						x.condition(e, nil, true)
					}
				}
			}
		case *ast.BinaryExpr:
			x.operands(n)
			x.bound(n)
		case *ast.ReturnStmt:
			x.result(t, n)
		case *ast.LabeledStmt:
			x.skipped["labelled statement"]++
		}
		return true
	})
}

// list visits the statements of a block.
func (x *finder) list(l []ast.Stmt) {
	for i, s := range l {
		if mutex, _, ok := x.lockCall(s); ok {
			x.locks[mutex].inList[s] = true
		}
		if i > 0 {
			x.swap(l[i-1], s)
		}
		x.delete(s)
	}
}

// add makes a mutant of the piece of source from start to end.
func (x *finder) add(kind string, start, end token.Pos, text string) *Mutant {
	p := x.source.module.set.Position(start)
	m := &Mutant{
		Number: x.first + len(x.mutants), Package: x.pkg, File: path.Base(x.file.name), Line: p.Line,
		Func: x.fn, Kind: kind, Text: oneLine([]byte(text)), source: x.file, start: x.offset(start), end: x.offset(end),
	}
	x.mutants = append(x.mutants, m)
	return m
}

// wrap puts text around a node on behalf of m. In before, # is m's test.
func (x *finder) wrap(m *Mutant, n ast.Node, before, after string) {
	on := func(s string) string { return strings.ReplaceAll(s, "#", fmt.Sprintf("leatmutant.On(%d)", m.Number)) }
	x.edits.wrap(m.Number, x.offset(n.Pos()), x.offset(n.End()), on(before), on(after))
}

func (x *finder) delete(s ast.Stmt) {
	text := x.text(s)
	switch s := s.(type) {
	case *ast.DeclStmt, *ast.ReturnStmt, *ast.BlockStmt, *ast.EmptyStmt, *ast.LabeledStmt,
		*ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt,
		*ast.CaseClause, *ast.CommClause:
		return
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			if x.acts(s) {
				x.skipped["declaration"]++
			}
			return
		}
		if !x.acts(s) && blank(s.Lhs) {
			return
		}
	case *ast.IfStmt:
		if s.Init == nil || !x.acts(s.Init) {
			return
		}
		if terminates(s) {
			x.skipped["function would have no end"]++
			return
		}
		text = x.header(s.Init, s.Cond)
	case *ast.ExprStmt:
		if name := x.callee(s.X); name == "panic" || name == "runtime.KeepAlive" {
			return
		}
	case *ast.BranchStmt:
		if s.Tok == token.GOTO || s.Tok == token.FALLTHROUGH {
			x.skipped["goto and fallthrough"]++
			return
		}
	}
	if _, _, ok := x.lockCall(s); ok {
		return // all of a function's go together
	}
	if x.lone[s] {
		return
	}
	m := x.add(deleted, s.Pos(), s.End(), text)
	x.wrap(m, s, "if !# { ", " }")
}

// result is the mutants of a function's end: a call whose error is returned, and a
// condition.
func (x *finder) result(t *ast.FuncType, s *ast.ReturnStmt) {
	if len(s.Results) != 1 || t.Results == nil || t.Results.NumFields() != 1 {
		return
	}
	e := s.Results[0]
	switch x.info().TypeOf(t.Results.List[0].Type).String() {
	case "error":
		if x.acts(s) {
			m := x.add(deleted, s.Pos(), s.End(), x.text(s))
			x.edits.insert(m.Number, m.start, fmt.Sprintf("if leatmutant.On(%d) { return nil }; ", m.Number))
		}
	case "bool":
		if b, ok := ast.Unparen(e).(*ast.BinaryExpr); x.constant(e) || ok && (b.Op == token.LAND || b.Op == token.LOR) {
			return
		}
		m := x.add(negated, e.Pos(), e.End(), x.text(e))
		x.wrap(m, e, "(# != (", "))")
	}
}

func (x *finder) info() *types.Info { return x.source.info }
