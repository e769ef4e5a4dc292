import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The command line of the tools: {@code --name value}, all of it, nothing unknown. */
final class Options {
    private final Map<String, String> values = new LinkedHashMap<>();

    Options(String[] arguments, String... known) {
        for (int i = 0; i < arguments.length; i += 2) {
            String name = arguments[i].replaceFirst("^--", "");
            if (!List.of(known).contains(name) || i + 1 == arguments.length) {
                throw new IllegalArgumentException("option " + arguments[i] + " of " + List.of(known));
            }
            values.put(name, arguments[i + 1]);
        }
    }

    String text(String name) {
        String value = values.get(name);
        if (value == null) {
            throw new IllegalArgumentException("--" + name + " is missing");
        }
        return value;
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    long number(String name) {
        return Long.parseLong(text(name));
    }

    /** A comma-separated list; empty when the option isn't there. */
    List<String> list(String name) {
        List<String> items = new ArrayList<>();
        for (String item : text(name, "").split(",")) {
            if (!item.isEmpty()) {
                items.add(item);
            }
        }
        return items;
    }
}
