{{- define "holdfast.name" -}}
{{- $name := ternary .Release.Name (printf "%s-holdfast" .Release.Name) (contains "holdfast" .Release.Name) -}}
{{- /* Behind it come -hosts and a number, in a label of 63 characters. */ -}}
{{- $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "holdfast.selector" -}}
app.kubernetes.io/name: holdfast
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "holdfast.labels" -}}
{{ include "holdfast.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "holdfast.replicas" -}}
{{- get (dict "one" 1 "pair" 2 "many" .Values.replicas) .Values.servers -}}
{{- end -}}

{{- define "holdfast.hosts" -}}
{{- $hosts := list -}}
{{- range until (int .Values.replicas) -}}
{{- $name := include "holdfast.name" $ -}}
{{- $hosts = append $hosts (printf "%s-%d.%s-hosts:8443" $name . $name) -}}
{{- end -}}
{{- toJson $hosts -}}
{{- end -}}

{{- define "holdfast.hostNames" -}}
{{- $name := include "holdfast.name" . -}}
{{- $inside := printf "%s.%s" $name .Release.Namespace -}}
{{- toJson (concat .Values.hostNames (list $name $inside (printf "%s.svc" $inside))) -}}
{{- end -}}

{{/* A setting as text. Helm reads numbers as floating-point, and would write 1e+06. */}}
{{- define "holdfast.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ printf "%.0f" . }}{{ else }}{{ toString . }}{{ end -}}
{{- end }}
