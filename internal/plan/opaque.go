package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// runs reports whether a resource that nobody here can read may start containers
// or what is like them: of the providers that are read, every type that is not
// known to start nothing; of others, those that are known to start something.
func runs(kind string) bool {
	provider, rest, _ := strings.Cut(kind, "_")
	switch provider {
	case "sandboxio": // of a newer release
		return true
	case "docker":
		return !slices.Contains(inertDocker, rest)
	case "kubernetes":
		for _, version := range []string{"_v1", "_v2", "_v1beta1", "_v2beta2"} {
			rest = strings.TrimSuffix(rest, version)
		}
		return !slices.Contains(inertKubernetes, rest)
	}
	return slices.Contains(runners, kind)
}

// What the providers for Docker and Kubernetes have that starts nothing. Source:
// the lists of resources in their documentation.
var (
	inertDocker     = strings.Fields("config network secret tag")
	inertKubernetes = strings.Fields(`annotations api_service certificate_signing_request cluster_role cluster_role_binding config_map config_map_v1_data
		csi_driver default_service_account endpoint_slice endpoints horizontal_pod_autoscaler ingress ingress_class labels limit_range
		mutating_webhook_configuration namespace network_policy node_taint persistent_volume_claim pod_disruption_budget
		pod_security_policy priority_class resource_quota role role_binding runtime_class secret secret_v1_data service service_account storage_class
		token_request validating_admission_policy validating_webhook_configuration`)
)

// runners are resources of other providers that start containers.
var runners = strings.Fields(`helm_release kubectl_manifest kustomization_resource argocd_application nomad_job
	aws_apprunner_service aws_batch_job_definition aws_ecs_service aws_ecs_task_definition azurerm_container_app azurerm_container_app_job
	azurerm_container_group google_cloud_run_service google_cloud_run_v2_job google_cloud_run_v2_service google_cloud_run_v2_worker_pool
	incus_instance lxd_instance podman_container proxmox_lxc daytona_sandbox`)

// What is said of it.
const (
	unreadable = "it may start containers, and a plan does not say which: it is not judged"
	notFetched = "the module is not here, as before terraform init: nothing of it is judged"
)

// typeList names types with how many there are of each. Nobody has checked what
// a plan calls a type.
func typeList(types map[string]int) string {
	const most = 12
	var out []string
	for _, k := range sortedKeys(types) {
		shown := k
		if !isName(k) {
			shown = strconv.QuoteToASCII(k)
		}
		out = append(out, fmt.Sprintf("%s (%d)", shown, types[k]))
	}
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("and %d other types", len(out)-most))
	}
	return strings.Join(out, ", ")
}

// Remarks are what a reviewer must know beside findings.
func (s Seen) Remarks() []string {
	out := slices.Clone(s.Notes)
	if n := s.skipped(); n > 0 {
		what := "resources are"
		if n == 1 {
			what = "resource is"
		}
		out = append(out, fmt.Sprintf("%d %s not judged: %s", n, what, typeList(s.Skipped)))
	}
	return out
}

func (s Seen) skipped() (n int) {
	for _, c := range s.Skipped {
		n += c
	}
	return n
}
