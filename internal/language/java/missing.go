package java

import "github.com/llmsandbox/llmsandbox/internal/language"

// missing has the artifacts of well-known packages: Java has no way to tell from a package's name.
var missing = language.Missing{
	Messages: [][2]string{{"error: package ", " does not exist"}, {"package ", " does not exist"}},
	Libraries: map[string]string{
		"com.fasterxml.jackson": "com.fasterxml.jackson.core:jackson-databind", "com.google.common": "com.google.guava:guava", "com.google.gson": "com.google.code.gson:gson",
		"com.opencsv": "com.opencsv:opencsv", "io.vavr": "io.vavr:vavr", "lombok": "org.projectlombok:lombok", "okhttp3": "com.squareup.okhttp3:okhttp",
		"org.apache.commons.codec": "commons-codec:commons-codec", "org.apache.commons.collections4": "org.apache.commons:commons-collections4",
		"org.apache.commons.csv": "org.apache.commons:commons-csv", "org.apache.commons.io": "commons-io:commons-io", "org.apache.commons.lang3": "org.apache.commons:commons-lang3",
		"org.apache.commons.math3": "org.apache.commons:commons-math3", "org.apache.commons.text": "org.apache.commons:commons-text", "org.apache.poi": "org.apache.poi:poi-ooxml",
		"org.assertj.core": "org.assertj:assertj-core", "org.joda.time": "joda-time:joda-time", "org.json": "org.json:json", "org.jsoup": "org.jsoup:jsoup",
		"org.junit": "junit:junit", "org.junit.jupiter": "org.junit.jupiter:junit-jupiter", "org.slf4j": "org.slf4j:slf4j-simple", "org.yaml.snakeyaml": "org.yaml:snakeyaml",
	},
}
