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

// lockUse is what a function does to one mutex.
type lockUse struct {
	lock, unlock bool
	statements   []ast.Stmt
	inList       map[ast.Stmt]bool // so that it can be guarded
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

// locked tells whether the function holds a mutex to its end.
func (x *finder) locked(s ast.Stmt) bool {
	for _, u := range x.locks {
		for _, l := range u.statements {
			if _, deferred := l.(*ast.DeferStmt); deferred && l.Pos() < s.Pos() {
				return true
			}
		}
	}
	return false
}

func names(n ast.Node, name string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}

// unlock takes a mutex out of a function.
func (x *finder) unlock(mutex string, u *lockUse) {
	if !u.lock || !u.unlock || len(u.inList) < len(u.statements) {
		x.skipped["a lock without its unlock in the same function"]++
		return
	}
	first, last := u.statements[0], u.statements[len(u.statements)-1]
	m := x.add(unlocked, first.Pos(), last.End(), mutex)
	m.Race = true
	for _, s := range u.statements {
		x.wrap(m, s, "if !# { ", " }")
	}
}

func (x *finder) noteLock(s ast.Stmt) {
	mutex, lock, ok := x.lockCall(s)
	if !ok {
		return
	}
	u := x.locks[mutex]
	if u == nil {
		u = &lockUse{inList: map[ast.Stmt]bool{}}
		x.locks[mutex] = u
	}
	u.lock = u.lock || lock
	u.unlock = u.unlock || !lock
	u.statements = append(u.statements, s)
}

// lockCall tells whether s is mutex.Lock() or Unlock(), RLock() or RUnlock(), deferred
// or not.
func (x *finder) lockCall(s ast.Stmt) (mutex string, lock, ok bool) {
	var call *ast.CallExpr
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, _ = s.X.(*ast.CallExpr)
	case *ast.DeferStmt:
		call = s.Call
	}
	if call == nil || len(call.Args) > 0 {
		return "", false, false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false, false
	}
	mutex = x.text(method.X)
	switch method.Sel.Name {
	case "Lock", "Unlock":
	case "RLock", "RUnlock":
		mutex += " (read)"
	default:
		return "", false, false
	}
	return mutex, !strings.HasSuffix(method.Sel.Name, "Unlock"), true
}

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

func (x *finder) info() *types.Info { return x.source.info }

func (x *finder) constant(e ast.Expr) bool { return x.info().Types[e].Value != nil }

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
