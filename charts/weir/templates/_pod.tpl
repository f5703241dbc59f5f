{{/*
What the pods of weir have in common.
*/}}

{{/* Where a pod may run: root, values (of the part), part. */}}
{{- define "weir.scheduling" -}}
{{- with .values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- if .values.topologySpreadConstraints }}
{{- toYaml .values.topologySpreadConstraints | nindent 0 }}
{{- else }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- topologyKey: {{ . }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "weir.selector" $ | nindent 6 }}
{{- end }}
{{- end }}
{{- end }}

{{/* A pod's own fields: root, account, token (whether it talks to kube-apiserver). */}}
{{- define "weir.pod" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: {{ .token }}
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- end }}

{{/* A container's image and rights: root, part. */}}
{{- define "weir.container" -}}
image: {{ include "weir.image" . | quote }}
{{- with .root.Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
securityContext:
  {{- toYaml .root.Values.securityContext | nindent 2 }}
{{- end }}

{{/* Probes by the program itself: program, config. Started and alive: it answers. Ready: as it says. */}}
{{- define "weir.probes" -}}
startupProbe:
  exec: {command: [/{{ .program }}, healthcheck, --live, --config, {{ .config }}]}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
readinessProbe:
  exec: {command: [/{{ .program }}, healthcheck, --config, {{ .config }}]}
  periodSeconds: 5
  timeoutSeconds: 5
# Two minutes without an answer: a slow node is no reason to start it anew.
livenessProbe:
  exec: {command: [/{{ .program }}, healthcheck, --live, --config, {{ .config }}]}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 6
{{- end }}

{{/* Seconds before a pod is killed: 30, or what stop.grace of a program's config says and 10 more. */}}
{{- define "weir.terminationGrace" -}}
{{- $zero := toDate "2006-01-02" "2000-01-01" -}}
{{- $grace := sub (dateModify (dig "stop" "grace" "0s" . | toString) $zero | unixEpoch) ($zero | unixEpoch) -}}
{{- max 30 (add $grace 10) -}}
{{- end }}

{{/*
Nine tenths of a memory limit in Mi or Gi for Go's own bound, so that a program that comes near to it collects more often before it
is killed; the rest is for what is not in Go's books.
*/}}
{{- define "weir.memoryLimit" -}}
{{- $limit := dig "limits" "memory" "" . | toString -}}
{{- if regexMatch "^[0-9]+[MG]i$" $limit -}}
{{- $mebibytes := mul (trimSuffix "Mi" (trimSuffix "Gi" $limit) | int) (ternary 1024 1 (hasSuffix "Gi" $limit)) -}}
env:
- {name: GOMEMLIMIT, value: {{ div (mul $mebibytes 9) 10 }}MiB}
{{- end -}}
{{- end }}

{{/* Volumes and mounts of the files that a configuration names: root, client; redis: whether Redis' too. */}}
{{- define "weir.secretVolumes" -}}
- name: identity
  secret:
    secretName: {{ include "weir.identitySecret" .root | quote }}
    defaultMode: 0440
{{- with (include "weir.kafkaClient" . | fromYaml).secret }}
- name: kafka
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0440
{{- end }}
{{- if and .redis .root.Values.redis.secret }}
- name: redis
  secret:
    secretName: {{ .root.Values.redis.secret | quote }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{- define "weir.secretMounts" -}}
- {name: identity, mountPath: /etc/weir/identity, readOnly: true}
{{- if (include "weir.kafkaClient" . | fromYaml).secret }}
- {name: kafka, mountPath: /etc/weir/kafka, readOnly: true}
{{- end }}
{{- if and .redis .root.Values.redis.secret }}
- {name: redis, mountPath: /etc/weir/redis, readOnly: true}
{{- end }}
{{- end }}
