package httpapi

import (
	"context"
	"net/http"

	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

func (s *Server) quotaRoutes() {
	answer(s, operation{
		id: "get-quotas", method: http.MethodGet, path: "/v1/quotas", tag: "Server", summary: "Tell what the project has of what it may have",
	}, func(ctx context.Context, _ *struct{}) (out apitypes.Quotas, err error) {
		q, err := s.service.Quotas(ctx, s.caller(ctx).Project)
		if err != nil {
			return out, err
		}
		out = apitypes.Quotas{Sandboxes: quota(q.Sandboxes), Memory: quota(q.Memory), Disk: quota(q.Disk), Rate: s.rates.most}
		if q.Volumes.Most > 0 {
			out.Volumes = new(quota(q.Volumes))
		}
		if q.Images.Most > 0 {
			out.Images = new(quota(q.Images))
		}
		if !q.Tomorrow.IsZero() {
			out.Today = &apitypes.Today{CPU: quota(q.CPU), Sent: quota(q.Sent), Ends: q.Tomorrow}
		}
		return out, nil
	})
}

func quota(q service.Quota) apitypes.Quota { return apitypes.Quota{Used: q.Used, Most: q.Most} }
