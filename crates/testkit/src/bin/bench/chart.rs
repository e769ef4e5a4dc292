//! A picture of the ratios, because a row of bars says more than a column of numbers.

use std::fmt::Write;

const WIDTH: f64 = 900.0;
const LABELS: f64 = 430.0;
const ROW: f64 = 22.0;
/// Room for the number behind the longest bar.
const NUMBERS: f64 = 70.0;

/// How many times better twinlog is.
#[derive(Debug)]
pub struct Bar {
    pub workload: String,
    pub measure: &'static str,
    pub times: f64,
}

/// An SVG with a bar each, on a logarithmic scale with a line at 1.
pub fn draw(bars: &[Bar]) -> String {
    let exponent = |times: f64| times.max(1e-3).log10();
    let exponents = || bars.iter().map(|bar| exponent(bar.times));
    let low = exponents().fold(-0.3, f64::min);
    let high = exponents().fold(0.3, f64::max);
    let x = |exponent: f64| {
        LABELS + (WIDTH - LABELS - NUMBERS) * (exponent - low) / (high - low).max(f64::EPSILON)
    };
    let height = ROW * (bars.len() as f64 + 2.0);
    let one = x(0.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"8\" y=\"16\" font-weight=\"bold\">twinlog beside Java MirrorMaker 2: times \
         better (logarithmic; the line is 1)</text>\n\
         <line x1=\"{one:.1}\" x2=\"{one:.1}\" y1=\"{ROW}\" y2=\"{height}\" stroke=\"black\"/>\n"
    );
    for (row, bar) in bars.iter().enumerate() {
        let end = x(exponent(bar.times));
        let (left, right) = (one.min(end), one.max(end));
        let top = ROW * (row as f64 + 1.5);
        let colour = if bar.times >= 1.0 {
            "#2a9d6f"
        } else {
            "#c8553d"
        };
        let (workload, middle) = (escape(&bar.workload), top + 11.0);
        writeln!(
            svg,
            "<text x=\"8\" y=\"{middle:.1}\">{workload}</text>\
             <text x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\" fill=\"#666\">{}</text>\
             <rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"15\" \
             fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{middle:.1}\">{:.1}</text>",
            LABELS - 8.0,
            escape(bar.measure),
            right - left,
            right + 5.0,
            bar.times,
        )
        .ok();
    }
    svg.push_str("</svg>\n");
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
