import java.util.*;
import java.util.regex.*;

/**
 * Writes which names java.util.regex matches as a whole against which patterns.
 *
 * Usage: java PatternGolden.java > patterns.tsv
 *
 * First the names, one row each after "N". Then rows "P", pattern, and a 0 or 1 for each name, or "error".
 * Last, rows "R" for random patterns: pattern and a hash (FNV-1a, 64 bit) of the answers for all names of
 * up to four characters over "ab.A".
 */
public class PatternGolden {
    static final String[] NAMES = {
        "", "a", "b", "A", "B", "aa", "ab", "ba", "abc", "ABC", "aB", "aaa", "aaaa", "aab", "abab", "abcabc", "a.b", "a-b", "a_b",
        "a b", "a|b", "a,b", "(a)", "a+b", "a*", "$a", "^a", "\\", "\\Q", "[a]", "{2}", "}", "]", "&", "&&", "a&b", "-", "a-", "z", "0", "1", "9", "a1", "1a", "a11",
        "aa1", "007", "_", "__consumer_offsets", "orders", "orders.v1", "orders-eu", "orders-internal", "mm2-configs.A.internal", "A.checkpoints.internal",
        "heartbeats", "us.heartbeats", "foo.replica", "console-consumer-123", "connect-cluster", "topic", "TOPIC", "Topic", "top", "pics", "topics",
        "\t", "\n", "a\n", "\na", "a\r\n", "\r\n", "a\r", "a\u0085", "a\u2028", "\u000b", "\f", "\u00a0", "\u00e9", "\u00c9", "e\u0301", "\u0130", "\u0131", "\u212a", "k", "K",
        "\u00df", "\u0661", "\u4e2d", "\ud83d\ude00", "\u03b1", "\u0391", "\u0416", "~", "!", "\u0000", "\u0007", "\u001b", "\u007f", "\u2000", "\u3000", "\u180e", "a\u00e9b"
    };

    static final String[] PATTERNS = {
        "", "a", "abc", ".*", ".+", ".", "a.*", ".*a", ".*a.*", "a|b", "a|b|abc", "|a", "a|", "a||b", "(a|b)*", "(?:a|b)+", "[ab]+", "a*", "a+", "a?",
        "a*?", "a+?", "a??", "a*+", "a++", "a?+", "a*+a", "a++b", "(a|ab)(c|bcd)?", "(?>a|ab)c", "(?>ab|a)c", "a{2}", "a{2,}", "a{1,2}", "a{2,3}?", "a{2,3}+", "a{2,3}+a", "a{0}", "a{0,0}b",
        // The defaults of MirrorMaker, and what people write.
        "mm2.*\\.internal|.*\\.replica|__.*", ".*[\\-\\.]internal|.*\\.replica|__.*", "console-consumer-.*|connect-.*|__.*", "orders.*|topic", "^orders$", "^orders.*$",
        "orders\\..*", "orders[.-].*", "(?!.*internal).*", "(?!__).*", "^(?!(orders|topic)$).*", "(?!orders).*|orders-eu", "(?<!x)a", ".*(?<!internal)", ".*(?<=internal)", "(?=o)orders",
        "(?i)topic", "(?i)TOPIC|abc", "a|(?i)b|abc", "((?i)a)b", "(?i:a)b", "(?i)a(?-i)b", "(?i-s)a", "(?-i)a", "(?i)[a-c]+", "(?i)[^a]", "(?i)\\u00e9", "(?i)k", "(?i)\\x{212a}", "(?i)[\\u00e9]", "(?i)\\Qa\\E",
        "(?s).", "(?s).*", "(?s)a.", "(?d).", "(?d)a$", "(?d)a.", "(?s-s).", "(?si)A.",
        // Anchors and boundaries.
        "^a", "a$", "a$\\n", "a$\\r\\n", "a$.*", "(?s)a$.*", "\\Aa\\z", "a\\Z", "a\\Z\\n", "(?s)a\\Z.*", "a\\z", "a^b", "a$b", "(a$|b)c", "(a$)", "^^a", "$", "^", "^$", "\\ba\\b.*", "\\ba", "a\\b", "\\Ba", "a\\B.*", "\\b", "\\B", "a\\b.b", "a\\B_b", ".*\\binternal",
        "(?m)a", "\\Ra", "a\\R", "\\R", "\\r\\n", "a[\\r\\n]+",
        // Quoting.
        "\\Qa\\E", "\\Qa.b\\E", "\\Qa.b", "\\Qa|b\\E", "\\Q\\E", "\\Qa\\Eb", "\\Qa\\E*", "\\Qab\\E*", "\\Q[a]\\E", "[\\Qa-z\\E]", "[\\Qa\\E-c]", "\\Q\\\\E", "\\Q\\Q\\E", "\\Q(a)\\E|b", "\\\\Q", "\\\\\\Qa\\E", "\\Q1\\E", "(a)\\1\\Q1\\E", "\\E", "a\\E", "\\Qa\\E\\Qb\\E", "a\\Q{2}\\E", "[\\Q]\\E]", "[\\Q^\\Ea]", "\\Q$a\\E", "\\Q&&\\E", "[\\Q&&\\E]",
        // Escapes.
        "\\a", "\\e", "\\t", "\\n", "\\f", "\\r", "\\x41", "\\x{41}", "\\x{1F600}", "\\x{110000}", "\\x4", "\\xg", "\\x{", "\\x{}", "\\u0041", "\\u004", "\\ud83d\\ude00", "\\ud83d", "\\0", "\\07", "\\0101", "\\0141", "\\0400", "\\08", "\\00", "\\cA", "\\cG", "\\c[", "\\c",
        "\\.", "\\-", "\\_", "\\,", "\\\\", "\\(a\\)", "\\$a", "\\^a", "\\|", "a\\|b", "\\{2\\}", "{2\\}", "\\ ", "a\\ b", "\\g", "\\i", "\\y", "\\q", "\\C", "\\j", "\\l", "\\L", "\\m", "\\o", "\\T", "\\U", "\\Y", "\\G", "\\Ga", "\\X", "\\N{LATIN SMALL LETTER A}", "\\é", "\\",
        "\\d", "\\d+", "\\D", "\\w+", "\\W", "\\s", "\\S", "\\h", "\\H", "\\v", "\\V", "[\\d]", "[^\\d]", "[\\w.]+", "[^\\w]", "[\\s\\S]", "[\\h]", "[\\v]", "[\\D1]", "[\\W_]", "\\w\\d", "\\d*a\\d*", "(?U)\\d", "(?U)\\w", "(?u)a", "(?iu)k", "(?x) a b # c", "(?x)a", "(?c)a", "(?-x)a",
        // Classes.
        "[abc]", "[^abc]", "[a-c]", "[a-cA-C]+", "[^a-c]", "[]a]", "[]]", "[^]]", "[^]a]", "[]", "[^]", "[", "[a", "[a-", "[a-]", "[-a]", "[a-b-c]", "[--a]", "[a--]", "[c-a]", "[a-a]", "[^^]", "[^-a]", "[a^]", "[.]", "[.a]+", "[*+?]", "[(a)]", "[$^]a", "[\\]]", "[\\[]", "[[a]]", "[[a]b]", "[a[b]]", "[a[^b]]", "[^a[b]]", "[^[a]]", "[^[^a]]", "[^a[^b]]", "[[a-c][0-9]]+", "[a-c[0-9]_]+", "[[]", "[[]]", "[a[]]", "[a]]", "[a]b]", "[]-a]",
        "[a-z&&[abc]]", "[a-z&&abc]", "[a-z&&[^b]]", "[a-z&&[^a-k]]", "[a-z&&[ab]&&[bc]]", "[a-z&&ab&&bc]", "[a-z&&[ab]c]", "[abc&&b-z&&c]", "[abc&&[ab]c&&c]", "[^a&&[ab]]", "[^a-c&&[ab]]", "[^a-z&&[^0-9]]", "[a&&]", "[&&a]", "[a&&&b]", "[a&b]", "[&]", "[&&]", "[a&]", "[a&&b]", "[a-c&&[^b]&&[^c]]", "[\\w&&[^\\d]]+", "[\\w&&[^_]]", "[\\p{L}&&[^a]]", "[a-z&&[^aeiou]]+", "[^\\W_]+", "[0-9&&[^5]]", "[[a-c]&&[b-z]]", "[[a-c]&&b]", "[b&&^a]", "[a&&[b]]", "[\\d&&1]", "[a-&&b]", "[ab&&b&&b]", "[[ab]&&[b]c]", "(?i)[a-z&&[^b]]", "(?i)[a&&A]", "[a-\\d]", "[\\d-a]", "[\\w-]", "[a-\\x63]", "[\\x61-c]", "[\\060-9]", "[\\t\\n]", "[\\b]", "[\\1]", "[\\Z]", "[\\z]", "[\\A]", "[\\B]", "[\\G]", "[\\R]", "[\\k]", "[\\ud83d\\ude00]", "[\ud83d\ude00]", "[\\e-a]", "[ -~]", "[a-z0-9._-]+", "[a-z0-9_.\\-]+", "[\\x{0}-\\x{10FFFF}]", "[\\v-z]", "[^\\x{0}-\\x{10FFFF}]",
        // Properties.
        "\\p{Lower}", "\\p{Upper}", "\\p{ASCII}", "\\p{Alpha}", "\\p{Digit}", "\\p{Alnum}+", "\\p{Punct}", "\\p{Graph}", "\\p{Print}", "\\p{Blank}", "\\p{Cntrl}", "\\p{XDigit}", "\\p{Space}", "\\P{Alpha}", "[\\p{Alpha}\\d]+", "[^\\p{Alpha}]", "\\p{L}", "\\pL", "\\PL", "\\p{Lu}", "\\p{Ll}", "\\p{Nd}", "\\p{N}", "\\p{P}", "\\p{S}", "\\p{Z}", "\\p{Zs}", "\\p{M}", "\\p{IsL}", "\\p{IsLu}", "\\p{gc=Lu}", "\\p{general_category=Lu}", "\\p{IsAlphabetic}", "\\p{IsLowercase}", "\\p{IsUppercase}", "\\p{IsWhite_Space}", "\\p{IsDigit}", "\\p{IsPunctuation}", "\\p{IsLatin}", "\\p{IsGreek}", "\\p{script=Greek}", "\\p{sc=Cyrillic}", "\\p{IsHan}", "\\p{InGreek}", "\\p{InBasicLatin}", "\\p{block=BasicLatin}", "\\p{L1}", "\\p{all}", "\\p{LC}", "\\p{LD}", "\\p{C}", "\\p{Cn}", "\\p{IsControl}", "\\p{isalphabetic}", "\\p{ISLATIN}", "\\p{IsLATIN}", "\\p{IsLetter}", "\\p{IsIdeographic}", "\\p{IsTitlecase}",
        "\\p{javaLowerCase}", "\\p{javaUpperCase}", "\\p{javaWhitespace}", "\\p{javaLetter}", "\\p{javaDigit}", "\\p{javaLetterOrDigit}+", "\\p{javaSpaceChar}", "\\p{javaISOControl}", "\\p{javaDefined}", "\\p{javaAlphabetic}", "\\p{javaMirrored}", "\\p{javaTitleCase}", "\\p{javaIdeographic}", "\\p{javaIdentifierIgnorable}", "\\p{javaJavaIdentifierStart}", "\\p{Foo}", "\\p{lower}", "\\p{IsFoo}", "\\p{", "\\p", "\\p{}", "\\px", "(?i)\\p{Lower}", "(?i)\\p{Lu}", "(?i)\\p{Alpha}", "(?i)\\p{L}", "(?i)[\\p{Upper}]", "(?i)\\p{javaLowerCase}",
        // Groups and references.
        "(a)\\1", "(a|b)\\1", "(ab|c)+\\1", "(?<x>a|b)\\k<x>", "(?<x>a)(?<x>b)", "(?<x1>a)", "(?<1x>a)", "(?<x_y>a)", "(?<>a)", "\\k<x>", "(?<x>a)\\k<y>", "(?<x>a)\\k", "\\1", "\\1(a)", "(a)\\2", "(a)\\11", "(a)(b)\\11", "(\\1a)", "(a\\1)", "(a)|b\\1", "(a)?b\\1", "(a*)\\1b", "(?i)(a)\\1", "(?i)(ab)\\1", "(((a)))\\3", "(.)(.)\\2\\1", "(.+)\\1", "(?:a)\\1", "(?=(a))\\1", "(a)(?:\\1)*", "(abc)\\1",
        "(", ")", "(a", "a)", "(?", "(?a)", "(?:", "(?:a", "(?P<x>a)", "(?P>x)", "(?#c)a", "(?|a)", "(?=a", "(?<a", "(?<=a", "()", "()a", "(?:)", "(|a)b", "(?i", "(?i:", "(?i)", "(?:a)(?:b)", "((a)(b))", "(?=a)", "(?!a)b", "(?<=a)b|ab", "a(?<=a)b", "a(?<!b)b", "(?<=a*)b", "a(?<=a{1,2})b", "aa(?<=a{1,3})b|aab", "(?<=(a|bb))c|abc", "ab(?<=b|cc)c", "a(?=b).*", "a(?!b).*", "(?>a*)a", "(?>a*)b", "(?>a|b)+c",
        // Repetitions.
        "*", "+a", "?", "a**", "a+*", "a?*", "a???", "a+++", "a{", "a{}", "a{,2}", "a{a}", "a{1", "a{1,", "a{1,2", "a{2,1}", "a{-1}", "a{ 1}", "{", "{1}", "{a", "a}", "}", "]", "a]", "a{1}{2}", "a*{2}", "a{2}*", "a{2}+", "(a*)*", "(a*)+", "(a?)*b", "(a|b*)*", "(a{2}){2}", "^*", "^*a", "$*", "a$?", "\\b*a", "(?=a)*a", "(?=a)+a", "(?:)*", "()*", "|*", "(*a)", "(|*)", "a{0,1}", "a{1000}", "a{99999999999}", "a{2147483648}", "(?i)*", "(?i)a*", "[ab]{2}", "\\Qa\\E{2}", ".{3}", "\\d{1,3}", "(ab){1,2}", "(?:ab)++", "(?:ab|a)*+b", "(a|ab)*+b", "(?>(a|ab)*)b", "[^.]*+\\..*",
        "a b", "a,b", "#a", "~", "!", "a-b", "a_b", "é", "É", "(?i)é", "\ud83d\ude00", "\ud83d\ude00+", ".\ud83d", "<a>", "a=b", "a:b", "'a'", "\"a\"", "%", "@", "a/b", "`", ";"
    };

    static final String ALPHABET = "ab.A";

    public static void main(String[] args) {
        StringBuilder out = new StringBuilder();
        for (String name : NAMES) {
            out.append("N\t").append(escape(name)).append('\n');
        }
        for (String pattern : new LinkedHashSet<>(Arrays.asList(PATTERNS))) {
            out.append("P\t").append(escape(pattern)).append('\t').append(answers(pattern, Arrays.asList(NAMES))).append('\n');
        }
        List<String> names = new ArrayList<>();
        enumerate("", names);
        Random random = new Random(20240607);
        for (int i = 0; i < 600; i++) {
            String pattern = alternation(random, 3);
            out.append("R\t").append(escape(pattern)).append('\t').append(hash(answers(pattern, names))).append('\n');
        }
        System.out.write(out.toString().getBytes(java.nio.charset.StandardCharsets.US_ASCII), 0, out.length());
        System.out.flush();
    }

    static String answers(String pattern, List<String> names) {
        try {
            Pattern compiled = Pattern.compile(pattern);
            StringBuilder bits = new StringBuilder();
            for (String name : names) {
                bits.append(compiled.matcher(name).matches() ? '1' : '0');
            }
            return bits.toString();
        } catch (PatternSyntaxException e) {
            return "error";
        }
    }

    static String hash(String text) {
        if (text.equals("error")) {
            return text;
        }
        long hash = 0xcbf29ce484222325L;
        for (char c : text.toCharArray()) {
            hash = (hash ^ c) * 0x100000001b3L;
        }
        return String.format("%016x", hash);
    }

    static void enumerate(String name, List<String> names) {
        names.add(name);
        if (name.length() < 4) {
            for (char c : ALPHABET.toCharArray()) {
                enumerate(name + c, names);
            }
        }
    }

    static String alternation(Random random, int depth) {
        StringBuilder out = new StringBuilder();
        int alternatives = 1 + random.nextInt(2) * random.nextInt(3);
        for (int i = 0; i < alternatives; i++) {
            out.append(i > 0 ? "|" : "");
            int length = random.nextInt(4);
            for (int j = 0; j < length; j++) {
                out.append(atom(random, depth)).append(pick(random, "", "", "", "", "*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,2}", "{0,2}+"));
            }
        }
        return out.toString();
    }

    static String atom(Random random, int depth) {
        if (depth > 0 && random.nextInt(3) == 0) {
            String open = pick(random, "(", "(", "(?:", "(?=", "(?!", "(?>", "(?i:", "(?<g>");
            return open + alternation(random, depth - 1) + ")";
        }
        return pick(random, "a", "b", "A", "\\.", ".", "[ab]", "[^a]", "[a-z&&[^b]]", "\\w", "\\W", "\\p{Lower}", "\\p{javaUpperCase}", "\\Qb\\E", "(?i)", "(?-i)", "\\1",
            "[\\w&&[^A]]", "\\x61", "\\b", "^", "$", "(?<=a)", "(?<!b)", "(?<=a|b)", "\\h", "\\D");
    }

    static String pick(Random random, String... choices) {
        return choices[random.nextInt(choices.length)];
    }

    static String escape(String text) {
        StringBuilder out = new StringBuilder();
        for (char c : text.toCharArray()) {
            out.append(c > ' ' && c < 127 && c != '`' ? "" + c : String.format("`%04x", (int) c));
        }
        return out.toString();
    }
}
