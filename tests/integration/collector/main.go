// The collector of OpenTelemetry with its OTLP receiver, and its exporter to a file.
package main

import (
	"log"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
)

func main() {
	providers := []confmap.ProviderFactory{fileprovider.NewFactory()}
	settings := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otelcol"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				ProviderFactories: providers,
				DefaultScheme:     "file",
			},
		},
	}
	if err := otelcol.NewCommand(settings).Execute(); err != nil {
		log.Fatal(err)
	}
}

func factories() (made otelcol.Factories, err error) {
	// It tells nothing about itself, which would take a third more packages.
	made.Telemetry = telemetry.NewFactory(func() component.Config { return &struct{}{} })
	if made.Receivers, err = otelcol.MakeFactoryMap(otlpreceiver.NewFactory()); err == nil {
		made.Exporters, err = otelcol.MakeFactoryMap(fileexporter.NewFactory())
	}
	return made, err
}
