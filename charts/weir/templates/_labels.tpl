{{/*
Labels, annotations, names and images. What is called with a part takes (dict "root" $ "part" "aggregator").
*/}}

{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/part-of: weir
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_") }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels of a pod: without the chart's version, which alone is no reason to start pods anew. */}}
{{- define "weir.podLabels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/part-of: weir
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* metadata of an object: root, part, name; optionally namespaced (true), annotations (a map). */}}
{{- define "weir.metadata" -}}
name: {{ .name | quote }}
{{- if ne (toString .namespaced) "false" }}
namespace: {{ .root.Release.Namespace | quote }}
{{- end }}
labels:
  {{- include "weir.labels" . | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* An image: root, part. */}}
{{- define "weir.image" -}}
{{- $name := eq .part "weir" | ternary "weir" (printf "weir-%s" .part) -}}
{{- $image := printf "%s/%s:%s" (trimSuffix "/" .root.Values.image.registry) $name (.root.Values.image.tag | default .root.Chart.AppVersion) -}}
{{- with index .root.Values.image.digests .part }}{{ $image = printf "%s@%s" $image . }}{{ end -}}
{{- $image -}}
{{- end }}

{{- define "weir.identitySecret" -}}
{{ .Values.identity.existingSecret | default "weir-identity" }}
{{- end }}

{{/* Not empty where the controller makes the webhook's certificate, and announces it. */}}
{{- define "weir.selfManaged" -}}
{{- and .Values.injection.enabled (eq .Values.injection.certificates.mode "SelfManaged") | ternary "true" "" -}}
{{- end }}
