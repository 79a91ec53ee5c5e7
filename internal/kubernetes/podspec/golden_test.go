package podspec

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/llmsandbox/llmsandbox/backend"
)

var update = flag.Bool("update", false, "write what is built to testdata")

// TestGolden keeps whole pods in testdata, where a reader sees all that a sandbox's pod has.
func TestGolden(t *testing.T) {
	layers := plain()
	layers.AgentImage, layers.LayerBytes = "registry.example/llmsandbox/agent:1", 100<<20
	layers.Spec.Layers = []backend.Layer{{Target: "/opt/libraries/"}, {Target: "/sandbox/.cache", Writable: true}}
	for name, r := range map[string]Request{
		"default": plain(),
		"root":    asking(t, "", backend.Spec{User: "root", WritableRoot: true, Workdir: "/srv/project"}),
		"layers":  layers,
		"volumes": withVolumes(),
		"template": with(t, `
metadata:
  labels: {team: research}
spec:
  runtimeClassName: gvisor
  serviceAccountName: sandboxes
  priorityClassName: low
  nodeSelector: {disk: ssd}
  imagePullSecrets: [{name: registry}]
  tolerations: [{key: sandboxes, operator: Exists, effect: NoSchedule}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [sandboxes]}]}]}}}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data, readOnly: true}}
  - {name: scratch, emptyDir: {sizeLimit: 2Gi}}
  initContainers:
  - {name: fetch, image: registry.example/fetch:1, volumeMounts: [{name: llmsandbox-workdir, mountPath: /out}]}
  containers:
  - {name: exporter, image: registry.example/exporter:1}
  - name: sandbox
    env: [{name: STAGE, value: test}]
    resources: {requests: {cpu: 500m}, limits: {memory: 1Gi, example.com/gpu: 1}}
    volumeMounts: [{name: data, mountPath: /data, readOnly: true}, {name: scratch, mountPath: /scratch}]
`),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.Marshal(build(t, r))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the pod is another one; -update writes it if that is meant, want bytes.Equal(got, want) = true:\n%s", cmp.Diff(string(want), string(got)))
			}
		})
	}
}
