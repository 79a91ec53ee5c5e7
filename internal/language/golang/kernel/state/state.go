// Package state carries a Go kernel's variables from one cell's program to the next.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// Report is what a cell's program reports to the driver.
type Report struct {
	Values    []string   `json:"values,omitempty"`
	Panic     string     `json:"panic,omitempty"`
	Kind      string     `json:"kind,omitempty"`
	Trace     string     `json:"trace,omitempty"`
	Lost      []string   `json:"lost,omitempty"`
	Variables []Variable `json:"variables"`
}

// Variable is one as people read it.
type Variable struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

type variable struct {
	name string
	at   reflect.Value
}

var (
	variables []variable
	report    Report
)

// Var names a variable of the kernel by its address.
func Var(name string, at any) {
	variables = append(variables, variable{name, reflect.ValueOf(at).Elem()})
}

// Show keeps the values of the cell's last expression.
func Show(values ...any) {
	for _, v := range values {
		report.Values = append(report.Values, cut(show(v), 1<<20))
	}
}

// Run is a cell's program: the arguments are the files with the state, before and after.
func Run(cell func()) {
	before, after := os.Args[1], os.Args[2]
	os.Args = []string{"cell"}
	syscall.CloseOnExec(3)
	if err := load(before); err != nil {
		fmt.Fprintln(os.Stderr, "kernel:", err)
		os.Exit(1)
	}
	attempt(cell)
	if err := save(after); err != nil {
		fmt.Fprintln(os.Stderr, "kernel:", err)
		os.Exit(1)
	}
	line, err := json.Marshal(report)
	if err == nil {
		_, err = os.NewFile(3, "report").Write(line)
	}
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func attempt(cell func()) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		report.Kind, report.Panic = "panic", fmt.Sprint(v)
		if e, ok := v.(error); ok {
			report.Kind = strings.TrimPrefix(fmt.Sprintf("%T", e), "*")
		}
		frames := runtime.CallersFrames(callers())
		for {
			f, more := frames.Next()
			if i := strings.LastIndex(f.File, "cell["); i >= 0 {
				report.Trace += fmt.Sprintf("\t%s:%d in %s\n", f.File[i:], f.Line, strings.TrimPrefix(f.Function, "main."))
			}
			if !more {
				break
			}
		}
	}()
	cell()
}

func callers() []uintptr {
	pcs := make([]uintptr, 200)
	return pcs[:runtime.Callers(1, pcs)]
}

type saved struct {
	Name, Type string
	Data       []byte
}

func load(file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var list []saved
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return fmt.Errorf("read the variables: %w", err)
	}
	byName := map[string]saved{}
	for _, s := range list {
		byName[s.Name] = s
	}
	for _, v := range variables {
		s, ok := byName[v.name]
		if !ok || s.Type != v.at.Type().String() {
			continue
		}
		d := decoder{buf: s.Data}
		if err := d.value(v.at); err != nil {
			fmt.Fprintf(os.Stderr, "kernel: %s is lost: %v\n", v.name, err)
			v.at.SetZero()
		}
	}
	return nil
}

// save writes each variable by itself: one that cannot be kept costs no other.
func save(file string) error {
	var list []saved
	for _, v := range variables {
		e := encoder{seen: map[pointer]uint64{}}
		report.Variables = append(report.Variables, Variable{v.name, v.at.Type().String(), cut(show(v.at.Interface()), 200)})
		if err := e.value(v.at); err != nil {
			report.Lost = append(report.Lost, v.name+": "+err.Error())
			continue
		}
		list = append(list, saved{v.name, v.at.Type().String(), e.buf})
	}
	data, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the variables: %w", err)
	}
	return nil
}

func show(v any) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("(%T: cannot be shown)", v)
		}
	}()
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case error, fmt.Stringer:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%+v", v)
}

func cut(s string, most int) string {
	if len(s) > most {
		return s[:most] + "… (cut)"
	}
	return s
}

// open lets a field that is not exported be read and set.
func open(field reflect.Value) reflect.Value {
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}

// copied is a value that can be addressed.
func copied(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// raw is a value's memory.
func raw(v reflect.Value) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v.UnsafeAddr())), v.Type().Size())
}

var basic = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](),
	reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](),
	reflect.TypeFor[uintptr](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[complex64](), reflect.TypeFor[complex128](),
	reflect.TypeFor[string](), reflect.TypeFor[[]any](), reflect.TypeFor[map[string]any](), reflect.TypeFor[[]string](), reflect.TypeFor[[]int](),
}

// find is the type of a name in this program, which knows only those that it uses.
func find(name, pkg string) (reflect.Type, error) {
	for _, t := range basic {
		if t.String() == name && pkg == "" {
			return t, nil
		}
	}
	for _, stars := range []string{"", "*"} {
		for _, at := range typesByString(stars + name) {
			var t any
			(*[2]uintptr)(unsafe.Pointer(&t))[0] = at
			found := reflect.TypeOf(t)
			if stars != "" {
				found = found.Elem()
			}
			if home(found) == pkg && found.String() == name {
				return found, nil
			}
		}
	}
	return nil, fmt.Errorf("the type %s is not in this program: use it in the cell", name)
}
