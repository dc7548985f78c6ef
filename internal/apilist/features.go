package main

import (
	"fmt"
	"go/types"
	"path"
	"slices"
	"strings"
)

// features are the lines of one package, in the order of their names.
func features(pkg *types.Package) (lines []string) {
	qualify := func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return path.Base(p.Path())
	}
	str := func(t types.Type) string { return types.TypeString(t, qualify) }
	for _, name := range pkg.Scope().Names() {
		switch o := pkg.Scope().Lookup(name).(type) {
		case *types.Const:
			if o.Exported() {
				lines = append(lines, fmt.Sprintf("const %s %s = %s", name, str(o.Type()), o.Val().ExactString()))
			}
		case *types.Var:
			if o.Exported() {
				lines = append(lines, fmt.Sprintf("var %s %s", name, str(o.Type())))
			}
		case *types.Func:
			if o.Exported() {
				lines = append(lines, types.ObjectString(o, qualify))
			}
		case *types.TypeName:
			if o.Exported() {
				lines = append(lines, typeLines(o, str)...)
			}
		}
	}
	return lines
}

func typeLines(o *types.TypeName, str func(types.Type) string) []string {
	if o.IsAlias() {
		return []string{fmt.Sprintf("type %s = %s", o.Name(), str(types.Unalias(o.Type())))}
	}
	named := o.Type().(*types.Named)
	head := "type " + str(named)
	var lines []string
	switch u := named.Underlying().(type) {
	case *types.Struct:
		lines = append(lines, head+" struct")
		for i := range u.NumFields() {
			f := u.Field(i)
			if !f.Exported() {
				continue
			}
			line := fmt.Sprintf("%s struct, %s %s", head, f.Name(), str(f.Type()))
			if f.Embedded() {
				line = fmt.Sprintf("%s struct, embedded %s", head, str(f.Type()))
			}
			if tag := u.Tag(i); tag != "" {
				line += " `" + tag + "`"
			}
			lines = append(lines, line)
		}
	case *types.Interface:
		lines = append(lines, head+" interface")
		for i := range u.NumEmbeddeds() {
			lines = append(lines, fmt.Sprintf("%s interface, %s", head, str(u.EmbeddedType(i))))
		}
		for i := range u.NumExplicitMethods() {
			m := u.ExplicitMethod(i)
			lines = append(lines, fmt.Sprintf("%s interface, %s%s", head, m.Name(), strings.TrimPrefix(str(m.Signature()), "func")))
		}
	default:
		lines = append(lines, head+" "+str(u))
	}
	return append(lines, methodLines(named, str)...)
}

func methodLines(named *types.Named, str func(types.Type) string) (lines []string) {
	for i := range named.NumMethods() {
		m := named.Method(i)
		if !m.Exported() {
			continue
		}
		signature := m.Signature()
		lines = append(lines, fmt.Sprintf("method (%s) %s%s", str(signature.Recv().Type()), m.Name(),
			strings.TrimPrefix(str(signature), "func")))
	}
	slices.Sort(lines)
	return lines
}
