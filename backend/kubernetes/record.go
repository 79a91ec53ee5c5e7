package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// encode turns what is known of a sandbox into annotations of its pod. What is secret is
// not in them.
func encode(info backend.Info, guest backend.Guest) (map[string]string, error) {
	about, err := json.Marshal(info)
	if err != nil {
		return nil, fmt.Errorf("describe the sandbox: %w", err)
	}
	inside, err := json.Marshal(guest)
	if err != nil {
		return nil, fmt.Errorf("describe the inside: %w", err)
	}
	return map[string]string{podspec.AnnotationInfo: string(about), podspec.AnnotationGuest: string(inside)}, nil
}

// decodeInfo is the reverse of one half. Annotations of other programs may be
// anything; the API server bounds them.
func decodeInfo(pod *corev1.Pod) (backend.Info, error) {
	var info backend.Info
	if err := json.Unmarshal([]byte(pod.Annotations[podspec.AnnotationInfo]), &info); err != nil {
		return info, fmt.Errorf("annotation %s: %w", podspec.AnnotationInfo, err)
	}
	if info.ID == "" || info.ID != pod.Labels[podspec.LabelSandbox] {
		return info, fmt.Errorf("annotation %s: it is of sandbox %.50q, and the label says %.50q", podspec.AnnotationInfo, info.ID, pod.Labels[podspec.LabelSandbox])
	}
	info.Backend = Name
	return info, nil
}

// decodeGuest is that of the other half.
func decodeGuest(pod *corev1.Pod) (backend.Guest, error) {
	var guest backend.Guest
	err := json.Unmarshal([]byte(pod.Annotations[podspec.AnnotationGuest]), &guest)
	if err == nil && guest.Workdir == "" {
		err = errors.New("it has no working folder")
	}
	if err != nil {
		return guest, fmt.Errorf("annotation %s: %w", podspec.AnnotationGuest, err)
	}
	return guest, nil
}

// agentOf reads how to connect to an agent from the container that it is the main process of.
func agentOf(pod *corev1.Pod) (agenthost.Agent, error) {
	a := agenthost.Agent{File: agentFile}
	for _, c := range pod.Spec.Containers {
		if c.Name != podspec.Container {
			continue
		}
		for _, e := range c.Env {
			if e.Name == podspec.EnvToken {
				a.Token = e.Value
			}
		}
		line := append(c.Command[:len(c.Command):len(c.Command)], c.Args...)
		for i, arg := range line {
			if arg == "--listen" && i+1 < len(line) {
				a.Socket = line[i+1]
			}
		}
	}
	if a.Token == "" || !strings.HasPrefix(a.Socket, "@") {
		return a, fmt.Errorf("pod %s has no container %q with an agent", pod.Name, podspec.Container)
	}
	return a, nil
}

// ownerText describes a sandbox's owner, for people.
func ownerText() string {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Sprintf("pid %d", os.Getpid())
	}
	return fmt.Sprintf("pid %d on %s", os.Getpid(), host)
}
