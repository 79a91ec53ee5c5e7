package e2b

import (
	"net/http"
)

// healthPath is there on both ports, for anyone who knows the sandbox's id: SDKs learn from it whether the sandbox lives, and take every other answer for no.
const healthPath = "/health"

// envdRoutes are those of a sandbox's port for programs and files.
func (s *Server) envdRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /metrics", s.metricsNow)
	s.processRoutes(mux)
	s.fileRoutes(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, refusal(http.StatusNotFound, "there is no such route"))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A signature of a file is looked at where the file is.
		if r.URL.Path != healthPath && !isSigned(r) && !s.hasToken(r, targetOf(r.Context()).id) {
			answer(w, refusal(http.StatusUnauthorized, "the header "+tokenHeader+" is not the sandbox's token"))
			return
		}
		mux.ServeHTTP(w, r)
	})
}
