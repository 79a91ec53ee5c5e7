package httpapi

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/security"
)

// A cell has the JSON form of llmsandbox.Cell.
type cell struct {
	Status           llmsandbox.Status   `json:"status" enum:"ok,error,timeout,out_of_memory,output_limit,killed,refused,setup_failed,lost" doc:"What became of the code, as it was observed"`
	Count            int                 `json:"count" doc:"Its number in the kernel's process, from 1"`
	ExitCode         int                 `json:"exit_code,omitempty" doc:"Of code that exits, and of the kernel's process"`
	Signal           string              `json:"signal,omitempty" doc:"What ended the kernel's process"`
	Stdout           string              `json:"stdout"`
	Stderr           string              `json:"stderr"`
	StdoutTruncated  bool                `json:"stdout_truncated"`
	StderrTruncated  bool                `json:"stderr_truncated"`
	Value            map[string]string   `json:"value,omitempty" doc:"The last expression's by media type; base64 where that is not text"`
	Error            *cellError          `json:"error,omitempty" doc:"What the code ended with"`
	DurationMS       float64             `json:"duration_ms"`
	Artifacts        []artifact.Artifact `json:"artifacts" nullable:"false" doc:"Plots, tables and files that the code made"`
	ArtifactsDropped []string            `json:"artifacts_dropped,omitempty"`
	Network          []map[string]any    `json:"network,omitempty" doc:"Its attempts to reach something"`
	NetworkDropped   int                 `json:"network_dropped,omitempty"`
	Findings         []security.Finding  `json:"findings,omitempty" doc:"What the policy names in the code"`
	Interrupted      bool                `json:"interrupted,omitempty" doc:"It was interrupted, and ended by that"`
	StateLost        bool                `json:"state_lost,omitempty" doc:"What cells have defined is gone: the next one has a new process"`
	Restarted        bool                `json:"restarted,omitempty" doc:"The kernel's process had ended before this cell, which found none of the state"`
	Reason           string              `json:"reason,omitempty" doc:"Why there is no ordinary outcome"`
	Hints            []llmsandbox.Hint   `json:"hints,omitempty" doc:"What may help code that failed"`
}

type cellError struct {
	Name      string `json:"name" example:"ZeroDivisionError"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
}

type kernelPath struct {
	ID     string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Kernel string `path:"kernel" maxLength:"40" doc:"The kernel's id"`
}

func (s *Server) kernel(ctx context.Context, in *kernelPath) (k *llmsandbox.Kernel, release func(), err error) {
	return s.service.Kernel(ctx, s.caller(ctx).Project, in.ID, in.Kernel)
}

// useKernel has do use a kernel of the caller.
func useKernel[T any](ctx context.Context, s *Server, in *kernelPath, do func(*llmsandbox.Kernel) (T, error)) (out T, err error) {
	k, release, err := s.kernel(ctx, in)
	if err != nil {
		return out, err
	}
	defer release()
	return do(k)
}

func (s *Server) kernelRoutes() {
	const tag, all = "Kernels", "/v1/sandboxes/{id}/kernels"
	const one = all + "/{kernel}"
	answer(s, operation{
		id: "open-kernel", method: http.MethodPost, path: all, tag: tag, status: http.StatusCreated, write: true, summary: "Open an interpreter that keeps its state",
		doc: "It lives as long as its sandbox, or until it is removed, also when the server is started again.",
	}, func(ctx context.Context, in *struct {
		ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Body apitypes.NewKernel
	}) (opened apitypes.Kernel, err error) {
		leave, err := s.enter(ctx)
		if err != nil {
			return opened, err
		}
		defer leave()
		b := &in.Body
		k, release, err := s.service.OpenKernel(ctx, s.caller(ctx).Project, in.ID, b.Language, &llmsandbox.KernelOptions{Env: b.Env, Dir: b.Dir, Libraries: b.Libraries, Plain: b.Plain})
		if err != nil {
			return opened, err
		}
		defer release()
		return apitypes.Kernel(k.Info()), nil
	})
	fact(s, operation{
		id: "list-kernels", path: all, tag: tag, summary: "List the kernels of a sandbox",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox) (apitypes.Kernels, error) {
		found, err := sb.Kernels(ctx)
		return apitypes.Kernels{Kernels: apitypes.All(found, func(i llmsandbox.KernelInfo) apitypes.Kernel { return apitypes.Kernel(i) })}, err
	})
	register(s, operation{
		id: "close-kernel", method: http.MethodDelete, path: one, tag: tag, status: http.StatusNoContent, write: true, summary: "End a kernel with all that it has started",
	}, func(ctx context.Context, in *kernelPath) (*struct{}, error) {
		return nil, s.service.CloseKernel(ctx, s.caller(ctx).Project, in.ID, in.Kernel)
	})
	for _, op := range []struct {
		name, summary string
		do            func(*llmsandbox.Kernel, context.Context) error
	}{
		{"interrupt", "Interrupt the cell that runs, if one does", (*llmsandbox.Kernel).Interrupt},
		{"restart", "End a kernel's process, and start a new one", (*llmsandbox.Kernel).Restart},
		{"reset", "Forget what cells have defined", (*llmsandbox.Kernel).Reset},
	} {
		register(s, operation{
			id: op.name + "-kernel", method: http.MethodPost, path: one + "/" + op.name, tag: tag, status: http.StatusNoContent, write: true, summary: op.summary,
		}, func(ctx context.Context, in *kernelPath) (*struct{}, error) {
			return useKernel(ctx, s, in, func(k *llmsandbox.Kernel) (*struct{}, error) { return nil, op.do(k, ctx) })
		})
	}
	s.cellRoute(tag, one+"/cells")
	s.askRoutes(tag, one)
}

func (s *Server) cellRoute(tag, path string) {
	op := register(s, operation{
		id: "run-cell", method: http.MethodPost, path: path, tag: tag, write: true, summary: "Run code in a kernel",
		doc: "Cells of a kernel run one after the other. One whose client goes away is interrupted.",
	}, func(ctx context.Context, in *struct {
		ID     string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Kernel string `path:"kernel" maxLength:"40" doc:"The kernel's id"`
		Accept string `header:"Accept" doc:"text/event-stream for output as it is written"`
		Body   apitypes.NewCell
	}) (*huma.StreamResponse, error) {
		timeout, err := s.service.Timeout(seconds(in.Body.Timeout))
		if err != nil {
			return nil, err
		}
		leave, err := s.enter(ctx)
		if err != nil {
			return nil, err
		}
		k, release, err := s.kernel(ctx, &kernelPath{in.ID, in.Kernel})
		if err != nil {
			leave()
			return nil, err
		}
		lines := in.Body.Stdin
		opts := &llmsandbox.CellOptions{Timeout: timeout, Stdin: func(context.Context, string, bool) (string, error) {
			if len(lines) == 0 {
				return "", io.EOF
			}
			line := lines[0]
			lines = lines[1:]
			return strings.TrimSuffix(line, "\n"), nil
		}}
		return s.respond(wantsEvents(in.Accept), leave, func(ctx context.Context, stdout, stderr io.Writer) (ending, error) {
			opts.Stdout, opts.Stderr = stdout, stderr
			c, err := k.Run(ctx, in.Body.Code, opts)
			release() // before the answer: what was answered is kept, whatever becomes of the server
			return ending{c, c.Status, in.ID, c.Network, c.NetworkDropped}, err
		}), nil
	})
	s.streamed(op, reflect.TypeFor[cell](), "Cell")
}

func (s *Server) askRoutes(tag, path string) {
	type place struct {
		ID     string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Kernel string `path:"kernel" maxLength:"40" doc:"The kernel's id"`
		Body   apitypes.Place
	}
	answer(s, operation{
		id: "complete", method: http.MethodPost, path: path + "/complete", tag: tag, write: true, summary: "Complete code at a cursor",
	}, func(ctx context.Context, in *place) (apitypes.Completion, error) {
		return useKernel(ctx, s, &kernelPath{in.ID, in.Kernel}, func(k *llmsandbox.Kernel) (apitypes.Completion, error) {
			found, err := k.Complete(ctx, in.Body.Code, in.Body.Cursor)
			found.Matches = append([]string{}, found.Matches...) // never null
			return apitypes.Completion(found), err
		})
	})
	answer(s, operation{
		id: "inspect", method: http.MethodPost, path: path + "/inspect", tag: tag, write: true, summary: "Describe what stands at a cursor",
	}, func(ctx context.Context, in *place) (apitypes.Inspection, error) {
		return useKernel(ctx, s, &kernelPath{in.ID, in.Kernel}, func(k *llmsandbox.Kernel) (apitypes.Inspection, error) {
			text, err := k.Inspect(ctx, in.Body.Code, in.Body.Cursor)
			return apitypes.Inspection{Text: text}, err
		})
	})
	answer(s, operation{
		id: "list-variables", method: http.MethodGet, path: path + "/variables", tag: tag, write: true, summary: "List what cells have defined",
	}, func(ctx context.Context, in *kernelPath) (apitypes.Variables, error) {
		return useKernel(ctx, s, in, func(k *llmsandbox.Kernel) (apitypes.Variables, error) {
			found, err := k.Variables(ctx)
			return apitypes.Variables{Variables: append([]llmsandbox.Variable{}, found...)}, err
		})
	})
}
