package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	_ "unsafe" // for typesByString
)

// errLost: a value lives only in the process that made it.
var errLost = errors.New("lives only in the program that made it")

// typesByString finds what the program knows of a type.
//
//go:linkname typesByString reflect.typesByString
func typesByString(s string) []uintptr

// bound says which packages' types hold on to the process: files, connections, types.
func bound(t reflect.Type) bool {
	switch p := t.PkgPath(); p {
	case "os", "net", "reflect", "runtime", "context", "os/exec", "plugin", "internal/poll", "testing", "unique", "weak":
		return t.Kind() == reflect.Struct
	default:
		return strings.HasPrefix(p, "internal/") && p != "internal/bisect"
	}
}

type pointer struct {
	at uintptr
	t  reflect.Type
}

type encoder struct {
	buf  []byte
	seen map[pointer]uint64
	deep int
}

func (e *encoder) uint(n uint64) { e.buf = binary.AppendUvarint(e.buf, n) }
func (e *encoder) text(s string) { e.uint(uint64(len(s))); e.buf = append(e.buf, s...) }
func (e *encoder) known(v reflect.Value) bool {
	key := pointer{v.Pointer(), v.Type()}
	if id, ok := e.seen[key]; ok {
		e.uint(1)
		e.uint(id)
		return true
	}
	e.uint(2)
	e.seen[key] = uint64(len(e.seen))
	return false
}

// value writes v, which is addressable.
func (e *encoder) value(v reflect.Value) error {
	if e.deep++; e.deep > 100_000 {
		return fmt.Errorf("nested too deep: %w", errLost)
	}
	defer func() { e.deep-- }()
	t := v.Type()
	if bound(t) {
		return fmt.Errorf("%v %w", t, errLost)
	}
	switch v.Kind() {
	case reflect.Bool:
		n := uint64(0)
		if v.Bool() {
			n = 1
		}
		e.uint(n)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.buf = binary.AppendVarint(e.buf, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		e.uint(v.Uint())
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		e.text(string(raw(v)))
	case reflect.String:
		e.text(v.String())
	case reflect.Array:
		for i := range v.Len() {
			if err := e.value(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			e.uint(0)
			return nil
		}
		e.uint(1 + uint64(v.Len()))
		if t.Elem().Kind() == reflect.Uint8 {
			e.buf = append(e.buf, v.Bytes()...)
			return nil
		}
		for i := range v.Len() {
			if err := e.value(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := e.value(open(v.Field(i))); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		if v.IsNil() {
			e.uint(0)
		} else if !e.known(v) {
			return e.value(v.Elem())
		}
	case reflect.Map:
		if v.IsNil() {
			e.uint(0)
		} else if !e.known(v) {
			e.uint(uint64(v.Len()))
			for it := v.MapRange(); it.Next(); {
				for _, part := range []reflect.Value{it.Key(), it.Value()} {
					if err := e.value(copied(part)); err != nil {
						return err
					}
				}
			}
		}
	case reflect.Interface:
		if v.IsNil() {
			e.uint(0)
			return nil
		}
		inner := copied(v.Elem())
		e.uint(1)
		e.text(inner.Type().String())
		e.text(home(inner.Type()))
		return e.value(inner)
	default: // functions, channels, unsafe pointers
		if !v.IsZero() {
			return fmt.Errorf("%v %w", t, errLost)
		}
	}
	return nil
}

// home is the package of a type, or of what it points to.
func home(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath()
}

type decoder struct {
	buf  []byte
	seen []reflect.Value
}

func (d *decoder) uint() uint64 {
	n, k := binary.Uvarint(d.buf)
	if k <= 0 {
		panic("the state is damaged")
	}
	d.buf = d.buf[k:]
	return n
}

func (d *decoder) text() string {
	n := d.uint()
	if n > uint64(len(d.buf)) {
		panic("the state is damaged")
	}
	s := string(d.buf[:n])
	d.buf = d.buf[n:]
	return s
}

// value fills v, which is addressable.
func (d *decoder) value(v reflect.Value) error {
	t := v.Type()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.uint() != 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, k := binary.Varint(d.buf)
		d.buf = d.buf[k:]
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(d.uint())
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		copy(raw(v), d.text())
	case reflect.String:
		v.SetString(d.text())
	case reflect.Array:
		for i := range v.Len() {
			if err := d.value(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		n := d.uint()
		if n == 0 {
			return nil
		}
		s := reflect.MakeSlice(t, int(n-1), int(n-1))
		v.Set(s)
		if t.Elem().Kind() == reflect.Uint8 {
			d.buf = d.buf[copy(s.Bytes(), d.buf):]
			return nil
		}
		for i := range s.Len() {
			if err := d.value(s.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := d.value(open(v.Field(i))); err != nil {
				return err
			}
		}
	case reflect.Pointer, reflect.Map:
		switch d.uint() {
		case 0:
		case 1:
			v.Set(d.seen[d.uint()].Convert(t))
		default:
			if v.Kind() == reflect.Pointer {
				p := reflect.New(t.Elem())
				v.Set(p.Convert(t))
				d.seen = append(d.seen, p)
				return d.value(p.Elem())
			}
			m := reflect.MakeMap(t)
			v.Set(m)
			d.seen = append(d.seen, m)
			for range d.uint() {
				key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
				if err := errors.Join(d.value(key), d.value(value)); err != nil {
					return err
				}
				m.SetMapIndex(key, value)
			}
		}
	case reflect.Interface:
		if d.uint() == 0 {
			return nil
		}
		name, pkg := d.text(), d.text()
		inner, err := find(name, pkg)
		if err != nil {
			return err
		}
		made := reflect.New(inner).Elem()
		if err := d.value(made); err != nil {
			return err
		}
		v.Set(made)
	}
	return nil
}
