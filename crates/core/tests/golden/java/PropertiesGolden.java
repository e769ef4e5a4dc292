import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

/**
 * Writes what java.util.Properties makes of tricky files.
 *
 * Usage: java PropertiesGolden.java > properties.tsv
 *
 * First part: one row a case: the input, then key and value of each property in the order of keys, or
 * "!" when loading fails. Everything but printable ASCII is written as \xxxx. Second part: all inputs
 * of up to LENGTH characters over ALPHABET, one row for each first pair of characters, with a hash
 * (FNV-1a, 64 bit) over the same rows, because the rows themselves would be megabytes.
 */
public class PropertiesGolden {
    static final String ALPHABET = "a\\\n\r =#u";
    static final int LENGTH = 6;

    static final String[] CASES = {
        "", "a=b", "a:b", "a b", "a\tb", "a\fb", "a = b", "a : b", "a =: b", "a == b", "a  =  = b", "a:=b",
        "  a=b", "\t\f a=b", "a=b  ", "a=b\t", "a", "a=", "a:", "a ", "=b", ":b", " = b", "==", "=:=",
        "#a=b", "!a=b", "  #a=b", "a=#b", "a#=b", "a!=b", "a=b#c", "#a\\\nb=c", "#\\", "#", "!\n#\n",
        "a=b\nc=d", "a=b\rc=d", "a=b\r\nc=d", "a=b\n\n\nc=d", "a=b\n\rc=d",
        "a=b\\\nc", "a=b\\\n   c", "a=b\\\r\n\t\fc", "a=b\\\rc", "a=b\\\r\rc=d", "a=b\\\n\nc=d",
        "a=b\\\n\\\nc", "a=b\\\\\nc=d", "a=b\\\\\\\nc", "a=b\\", "a=b\\\\", "a=b\\\n", "a=b\\\r\n",
        "\\", "\\\n", "\\\na=b", "\\\n#a=b", "\\\n\n#a=b", "  \\\n  \\\n  a=b", "\\\n\\\n", "\\\\", "\\\\\n",
        "a\\\nb=c", "a\\\n  b=c", "a\\\n=c", "a\\\n c", "a \\\n = c", "a = \\\n c", "a=\\\n#c", "a=\\\n!c",
        "a\\ b=c", "a\\=b=c", "a\\:b=c", "a\\\\=b", "a\\\\\\=b=c", "a\\tb=c", "a=\\t\\n\\r\\f", "a=\\b\\a\\v\\0",
        "a=\\q\\\"\\'", "a=\\ b", "a=\\  b", "a= \\ b", "\\ a=b", "\\#a=b", "\\!a=b", "\\=a=b", "\\:=b", "\\=", "\\ ",
        "a=\\u0041", "a=\\u00e9", "a=\\u20AC", "\\u0061=b", "a\\u003db=c", "a=\\ud83d\\ude00", "a=\\u0000",
        "a=\\u", "a=\\u0", "a=\\u00", "a=\\u004", "a=\\u004g", "a=\\U0041", "a=\\uu0041", "a=\\u 041", "a=\\u00\\\n41",
        "a=\\u-041", "a=\\u+041", "\\u=b", "b=1\na=\\uxyzw\nc=2", "a=\\u000", "a=\\\\u0041", "a=\\\\\\u0041",
        "a=1\na=2", "a=1\nb=2\na=3", "a=1\n\\u0061=2",
        "a=\u00e9", "\u00e9=1", "a=\u00c3\u00a9", "a=\u0080\u00ff", "a=\u0000b", "\u00a0a=b", "a\u0085b=c", "a=\u000bb", "\u000ba=b",
        "a=b\u001a", "\u00ef\u00bb\u00bfa=b",
        "us->eu.enabled = true", "us->eu.topics = a.*, b\\\\.c", "us->eu.topics=a\\.b", "HTTP\\://localhost\\:18906",
        "listeners=HTTP\\://localhost\\:18906", "B-_~:?#[]@!$&'()*+=\"<>{}|^`.x=1",
        "B-_~\\:?#[]@!$&'()*+\\=\"<>{}|^`.x=1", "A->B-_~\\:?#[]@\\!$&'()*+\\=\"<>{}|^`->C.enabled=true",
        "clusters = us,\\\n  eu, \\\n  ap", "clusters=us, \\\n # not a comment\n", "a=b \\\n", "a=b\\ \nc=d", "a=b\\ ",
        "a=b\n ", "a=b\n\t#c", " ", "\n", "\r", "\r\n", "\f", "a\n=b", "a \n=b", "a\u0001=b", "key with spaces",
        "a=${env:X}", "a=$ENV", "sasl.jaas.config=x required \\\n  user=\"a\" \\\n  password=\"b\\\\c\";", "a=\"b\"", "'a'='b'"
    };

    public static void main(String[] args) {
        StringBuilder out = new StringBuilder();
        for (String input : CASES) {
            out.append(row(input)).append('\n');
        }
        for (char first : ALPHABET.toCharArray()) {
            for (char second : ALPHABET.toCharArray()) {
                long[] hash = {0xcbf29ce484222325L};
                enumerate("" + first + second, hash);
                out.append("#\t").append(escape("" + first + second)).append('\t')
                   .append(String.format("%016x", hash[0])).append('\n');
            }
        }
        System.out.print(out);
    }

    static void enumerate(String input, long[] hash) {
        for (byte b : row(input).getBytes(StandardCharsets.US_ASCII)) {
            hash[0] = (hash[0] ^ b) * 0x100000001b3L;
        }
        if (input.length() < LENGTH) {
            for (char next : ALPHABET.toCharArray()) {
                enumerate(input + next, hash);
            }
        }
    }

    static String row(String input) {
        StringBuilder row = new StringBuilder(escape(input));
        try {
            Properties properties = new Properties();
            properties.load(new ByteArrayInputStream(input.getBytes(StandardCharsets.ISO_8859_1)));
            for (String key : new TreeSet<>(properties.stringPropertyNames())) {
                row.append('\t').append(escape(key)).append('\t').append(escape(properties.getProperty(key)));
            }
        } catch (IllegalArgumentException | IOException e) {
            row.append("\t!");
        }
        return row.toString();
    }

    static String escape(String text) {
        StringBuilder out = new StringBuilder();
        for (char c : text.toCharArray()) {
            out.append(c > ' ' && c < 127 && c != '\\' && c != '!' && c != '#' ? "" + c : String.format("\\%04x", (int) c));
        }
        return out.toString();
    }
}
