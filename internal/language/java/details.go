package java

import "github.com/llmsandbox/llmsandbox/internal/language"

var details = language.Details{
	UseCases:       []string{"object-oriented programs", "algorithms", "trying out the Java library"},
	PackageManager: "mvn",
	Version:        []string{"java", "--version"},
	Examples: []language.Example{
		{
			Title: "Hello", Description: "Any class with a main method will do.",
			Code: `public class Main {
    public static void main(String[] args) {
        System.out.println("Hello from Java!");
    }
}
`,
		},
		{
			Title: "Streams", Description: "Counts words.",
			Code: `import java.util.*;
import java.util.stream.*;

public class Main {
    public static void main(String[] args) {
        Map<String, Long> count = Stream.of("a b a c a b".split(" "))
            .collect(Collectors.groupingBy(w -> w, TreeMap::new, Collectors.counting()));
        System.out.println(count);
    }
}
`,
		},
	},
}
