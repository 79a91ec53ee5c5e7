package e2b

import (
	"context"
	"errors"
	"slices"

	"connectrpc.com/connect"

	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/process"
	"github.com/llmsandbox/llmsandbox/internal/language/bash"
	"github.com/llmsandbox/llmsandbox/security"
)

// checkLine has the server's policy look at a command that is a line of a shell, in the form in which SDKs start one. Of other programs, such as a shell in a
// terminal, there is no text to look at.
func (s *Server) checkLine(ctx context.Context, config *process.ProcessConfig) error {
	args := config.GetArgs()
	if config.GetCmd() != "/bin/bash" || len(args) != 3 || !slices.Equal(args[:2], []string{"-l", "-c"}) {
		return nil
	}
	_, refused, err := s.service.Sandbox().Policy.Check(ctx, security.Program{Language: bash.Language.Name, Code: []byte(args[2])})
	if err == nil && refused != "" {
		return connect.NewError(connect.CodePermissionDenied, errors.New(valid(refused)))
	}
	return err
}
