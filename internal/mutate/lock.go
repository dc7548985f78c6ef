package main

import (
	"go/ast"
	"strings"
)

// lockUse is what a function does to one mutex.
type lockUse struct {
	lock, unlock bool
	statements   []ast.Stmt
	inList       map[ast.Stmt]bool // so that it can be guarded
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
