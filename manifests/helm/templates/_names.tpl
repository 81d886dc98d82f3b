{{/* The name of the objects, of the Lease and of the ConfigMap. */}}
{{- define "stowage.name" -}}
{{- if .Values.nameOverride -}}
{{ .Values.nameOverride }}
{{- else if contains "stowage" .Release.Name -}}
{{ .Release.Name }}
{{- else -}}
{{ .Release.Name }}-stowage
{{- end -}}
{{- end -}}

{{/* The labels of every object. */}}
{{- define "stowage.labels" -}}
{{ include "stowage.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The labels by which pods are selected. */}}
{{- define "stowage.selector" -}}
app.kubernetes.io/name: stowage
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The Lease. */}}
{{- define "stowage.leaseNamespace" -}}
{{ .Values.leaderElection.resourceNamespace | default .Release.Namespace }}
{{- end -}}
{{- define "stowage.leaseName" -}}
{{ .Values.leaderElection.resourceName | default (include "stowage.name" .) }}
{{- end -}}

{{/* The subject of the bindings. */}}
{{- define "stowage.subjects" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "stowage.name" . }}
    namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* The rights on the Lease. */}}
{{- define "stowage.leaseRules" -}}
# Creates the Lease of leader election. A right to create cannot be limited to a name.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
# Takes, renews and releases the Lease.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "stowage.leaseName" . }}]
  verbs: [get, update]
{{- end -}}

{{/* What every container may do. */}}
{{- define "stowage.containerSecurityContext" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}
