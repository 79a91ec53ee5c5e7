package mcpenv

import "cmp"

// defaultNamespace is what others take where the variables name the backend and no
// namespace. Who names the backend by a flag gets the kubeconfig's, as in other commands.
const defaultNamespace = "default"

// namespace reads where the pods are. Other backends have no namespaces, and leave the
// variable alone: its name is not only ours.
func (r *reader) namespace() {
	if r.backend != kubernetes || r.given("namespace") {
		return
	}
	r.s.Namespace = r.text("NAMESPACE")
	if Backend(r.getenv) == kubernetes && !r.given("backend") {
		r.s.Namespace = cmp.Or(r.s.Namespace, defaultNamespace)
	}
}
