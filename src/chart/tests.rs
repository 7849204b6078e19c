use std::fs;

use super::bandwidth::Bandwidth;
use super::cards::Cards;
use super::conv3d::Conv3d;
use super::footprint::Footprint;
use super::gather::Gather;
use super::in_flight::InFlight;
use super::kv::Kv;
use super::latency::Latency;
use super::loaded_latency::LoadedLatency;
use super::matvec::Matvec;
use super::saturation::Saturation;
use super::soak::SoakChart;
use super::stride::Stride;
use super::testing::{footprint_row, h200, h200_tuned, h200_with_a_soak, h200_with_every_pattern, h200_with_footprints, host, many, spoil};
use super::transfer::Transfer;
use super::*;
use crate::pattern::Level;
use crate::record::Measurement;

/// The SVG of the first group's chart, or why there is none.
fn draw_first<C: Chart>(runs: &[Run]) -> Result<String, String> {
    C::new(&groups(runs)[0].1).and_then(|chart| svg(&chart))
}

/// The texts of an SVG, joined by spaces: wrapped captions become whole again.
fn text_of(svg: &str) -> String {
    texts(svg).into_iter().map(|text| text.content).collect::<Vec<_>>().join(" ")
}

fn row<'a>(run: &'a mut Run, id: &str) -> &'a mut Measurement {
    run.measurements.iter_mut().find(|row| row.id == id).unwrap()
}

/// One text of an SVG and the box that it takes in a wide font.
#[derive(Debug)]
struct Placed {
    content: String,
    left: f32,
    top: f32,
    right: f32,
    bottom: f32,
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split_once('"')).map(|(value, _)| value)
}

fn texts(svg: &str) -> Vec<Placed> {
    let number = |tag: &str, name| attribute(tag, name).unwrap().parse::<f32>().unwrap();
    svg.split("<text")
        .skip(1)
        .map(|element| {
            let (tag, rest) = element.split_once(">\n").unwrap();
            let content = rest.split_once("\n</text>").unwrap().0;
            let content =
                content.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&");
            let (x, y, em) = (number(tag, "x"), number(tag, "y"), number(tag, "font-size"));
            // DejaVu Sans runs 17 % wider than the font measured with.
            let width = raster::advance(&content, em) * 1.17;
            let left = match attribute(tag, "text-anchor").unwrap() {
                "start" => 0.0,
                "middle" => -width / 2.0,
                _ => -width,
            };
            let base = match attribute(tag, "dy").unwrap() {
                "0.76em" => 0.76 * em,
                "0.5ex" => 0.26 * em,
                _ => -0.26 * em,
            };
            let descent = if content.chars().all(|c| c.is_ascii_digit() || c == '.') { 0.0 } else { 0.22 * em };
            let (top, bottom, right) = (base - 0.74 * em, base + descent, left + width);
            if attribute(tag, "transform").is_some() {
                Placed { content, left: x + top, right: x + bottom, top: y - right, bottom: y - left }
            } else {
                Placed { content, left: x + left, right: x + right, top: y + top, bottom: y + bottom }
            }
        })
        .collect()
}

fn assert_well_placed(svg: &str) {
    let height: f32 = attribute(svg, "height").unwrap().parse().unwrap();
    let texts = texts(svg);
    assert!(texts.len() > 5);
    for (n, a) in texts.iter().enumerate() {
        assert!(a.left >= 0.0 && a.right <= theme::WIDTH as f32 && a.top >= 0.0 && a.bottom <= height, "outside: {a:?}");
        for b in &texts[n + 1..] {
            let apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
            assert!(apart, "overlap: {a:?} and {b:?}");
        }
    }
}

fn assert_all_well_placed(runs: &[Run]) {
    assert_well_placed(&draw_first::<Bandwidth>(runs).unwrap());
    assert_well_placed(&draw_first::<Stride>(runs).unwrap());
    assert_well_placed(&draw_first::<Conv3d>(runs).unwrap());
    // Recorded hosts have none of these.
    for svg in [
        draw_first::<Gather>(runs),
        draw_first::<Kv>(runs),
        draw_first::<Saturation>(runs),
        draw_first::<InFlight>(runs),
        draw_first::<Latency>(runs),
        draw_first::<LoadedLatency>(runs),
        draw_first::<Matvec>(runs),
        draw_first::<Transfer>(runs),
    ] {
        svg.map_or_else(|why| assert!(runs[0].device.kind == DeviceKind::Host, "{why}"), |svg| assert_well_placed(&svg));
    }
    for (_, group) in groups_of_cards(runs) {
        assert_well_placed(&svg(&Cards::new(&group).unwrap()).unwrap());
    }
}

#[test]
fn labels_lie_inside_and_apart_with_one_to_eight_cards() {
    for n in [1, 2, 3, 5, 8] {
        assert_all_well_placed(&many(n));
    }
    assert_all_well_placed(&[h200_with_every_pattern()]);
    assert_all_well_placed(&[host()]);
}

#[test]
fn labels_lie_inside_and_apart_with_names_and_labels_of_any_length() {
    let mut runs = many(8);
    for (n, run) in runs.iter_mut().enumerate() {
        run.device.name = "W".repeat(20 * n + 1);
        run.labels.insert("where".into(), "x".repeat(300));
        run.measurements[1].notes.push("a long note ".repeat(30));
        run.suite_version = n.to_string();
    }
    assert_all_well_placed(&runs);
}

#[test]
fn labels_lie_inside_and_apart_with_figures_of_any_size() {
    for factor in [1e-6, 0.013, 0.4, 1.0, 200.0] {
        let mut runs = many(3);
        for (n, run) in runs.iter_mut().enumerate() {
            run.peaks.memory_gbps[0].value *= factor;
            for row in &mut run.measurements {
                let factor = factor / 10f64.powi(n as i32);
                row.achieved_gbps = row.achieved_gbps.map(|v| v * factor);
                row.time_ns.as_mut().unwrap().median /= factor;
                row.compulsory_gbps = row.compulsory_gbps.map(|v| v * factor);
                row.compute_utilization = row.compute_utilization.map(|v| v / 10f64.powi(n as i32));
                if let Some(tuning) = &mut row.tuning {
                    tuning.naive_gbps = tuning.naive_gbps.map(|v| v * factor);
                    tuning.in_flight.iter_mut().for_each(|point| point.gbps *= factor);
                }
            }
        }
        assert_all_well_placed(&runs);
    }
}

#[test]
fn case_labels_are_turned_when_there_are_many() {
    let mut run = h200_with_every_pattern();
    let row = row(&mut run, "conv3d/direct/f32/1x16").clone();
    run.measurements.extend((1..=12).map(|n| Measurement { id: format!("conv3d/tensor/bf16/{n}x{n}"), ..row.clone() }));
    let svg = draw_first::<Conv3d>(&[run]).unwrap();
    assert!(svg.contains("rotate(270"));
    assert_well_placed(&svg);
}

#[test]
fn the_bandwidth_chart_tells_what_was_measured_and_how() {
    let text = text_of(&draw_first::<Bandwidth>(&[h200()]).unwrap());
    for part in [
        "Memory bandwidth, f32 streams",
        "Achieved GB/s",
        "copy engine",
        "4712",
        "4305",
        "lower to upper quartile",
        "requested bytes, read + written, over the median time",
        "NVIDIA H200 arrays of 3.75 GiB; theoretical peak 4814 GB/s; driver 580.159.03; ECC on; 2026-01-02",
        "Measured by hbmark 0.1.0 (suite version 1).",
        "theoretical peak (2 x memory clock x bus width / 8)",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("RAM"));
}

#[test]
fn the_stride_chart_tells_requested_from_compulsory_bytes_without_colour() {
    let svg = draw_first::<Stride>(&[h200_with_every_pattern()]).unwrap();
    let text = text_of(&svg);
    for part in [
        "Read, GB/s",
        "Copy, GB/s",
        "stride in bytes, log scale",
        "requested bytes a second",
        "compulsory bytes a second",
        "32-byte sectors",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    // In each panel nine filled markers and nine open ones; one filled in the legend, one open in the key.
    let filled_with = |color: &str| svg.lines().filter(|line| line.starts_with("<circle") && line.contains(color)).count();
    assert_eq!(filled_with("fill=\"#0072B2\""), 2 * 9 + 1);
    assert_eq!(filled_with("fill=\"#FFFFFF\""), 2 * 9 + 1);
}

#[test]
fn the_axis_of_strides_up_to_2_mib_has_labels_at_equal_distances() {
    let mut run = h200_with_every_pattern();
    let last = row(&mut run, "stride/read/1024").clone();
    run.measurements.extend((11..=21).map(|log| Measurement { id: format!("stride/read/{}", 1u64 << log), ..last.clone() }));
    let svg = draw_first::<Stride>(&[run]).unwrap();
    assert_well_placed(&svg);
    let labels: Vec<String> = texts(&svg).into_iter().map(|text| text.content).collect();
    let at = |label: &str| labels.iter().position(|text| text == label);
    assert!(["4", "64", "1 KiB", "16 KiB", "256 KiB"].iter().all(|label| at(label).is_some()), "{labels:?}");
}

#[test]
fn the_gather_chart_shows_chunks_read_and_written_without_those_of_other_sizes() {
    let mut run = h200_with_every_pattern();
    let half = Measurement { id: "gather/read/64@half".into(), ..row(&mut run, "gather/read/64").clone() };
    run.measurements.push(half);
    let svg = draw_first::<Gather>(&[run]).unwrap();
    let text = text_of(&svg);
    for part in ["Gather (read), GB/s", "Scatter (write), GB/s", "chunk in bytes, log scale", "arrays of 1 GiB", "a sector of its own"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let filled = svg.lines().filter(|line| line.starts_with("<circle") && line.contains("fill=\"#0072B2\"")).count();
    assert_eq!(filled, 2 * 11 + 1);
}

#[test]
fn the_kv_chart_sets_pages_beside_a_contiguous_read_and_is_nothing_without_pages() {
    let text = text_of(&draw_first::<Kv>(&[h200_with_every_pattern()]).unwrap());
    for part in ["4 KiB pages", "16 KiB pages", "64 KiB pages", "contiguous read", "4712", "4404"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert_eq!(draw_first::<Kv>(&[h200()]).unwrap_err(), "no run has a row of gather/kv at its default size");
}

#[test]
fn the_transfer_chart_shows_both_kinds_of_memory_beside_what_the_link_carries_and_names_no_cache() {
    let text = text_of(&draw_first::<Transfer>(&[h200_with_every_pattern()]).unwrap());
    for part in
        ["to the card, pinned", "both at once, pageable", "55.3", "101", "arrays of 256 MiB", "link PCIe 5.0 x16", "63.0 GB/s in each"]
    {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("cache"), "{text}");
    let mut unknown = h200_with_every_pattern();
    unknown.peaks.link_gbps.clear();
    let text = text_of(&draw_first::<Transfer>(&[unknown]).unwrap());
    assert!(text.contains("55.3") && !text.contains("what the link carries"), "{text}");
    assert_eq!(draw_first::<Transfer>(&[h200()]).unwrap_err(), "no run has a row of transfer at its default size");
}

#[test]
fn the_conv3d_chart_shows_bandwidth_and_utilization() {
    let text = text_of(&draw_first::<Conv3d>(&[h200_with_every_pattern()]).unwrap());
    for part in [
        "Achieved GB/s",
        "Compute utilization, %",
        "1→16",
        "16→16",
        "32→32 depthwise",
        "30 %",
        "2890",
        "71.0",
        "fma/f32 peak 59836 GFLOP/s",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("cache"));
}

#[test]
fn the_matvec_chart_shows_bandwidth_by_batch_and_utilization_where_its_peak_was_measured() {
    let svg = draw_first::<Matvec>(&[h200_with_every_pattern()]).unwrap();
    let text = text_of(&svg);
    for part in [
        "Achieved GB/s",
        "Compute utilization, %",
        "inputs that share a pass (batch), log scale",
        "8 matrices of 16384 x 16384",
        "theoretical memory peak 4814 GB/s",
        "fma/f32 peak 59836 GFLOP/s",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("Not drawn"), "{text}");
    // Five bandwidths and two utilizations, and the symbol in the legend.
    assert_eq!(svg.lines().filter(|line| line.starts_with("<circle") && line.contains("fill=\"#0072B2\"")).count(), 5 + 2 + 1);
}

#[test]
fn without_any_utilization_the_matvec_chart_shows_the_bandwidth_alone() {
    let mut run = h200_with_every_pattern();
    run.measurements.iter_mut().filter(|row| row.pattern == "matvec").for_each(|row| row.compute_utilization = None);
    let svg = draw_first::<Matvec>(&[run]).unwrap();
    assert!(!text_of(&svg).contains("Compute utilization, %"));
    assert_well_placed(&svg);
}

#[test]
fn data_that_fit_the_cache_are_not_called_memory_bandwidth() {
    let text = text_of(&draw_first::<Conv3d>(&[host()]).unwrap());
    assert!(text.contains("All rows: the data fit the last cache, so this bandwidth is not the memory's."), "{text}");

    let mut run = h200();
    row(&mut run, "stream/copy/f32").level = Some(Level::Mixed);
    let text = text_of(&draw_first::<Bandwidth>(&[run]).unwrap());
    assert!(
        text.contains("stream/copy/f32: the last cache holds part of the data, so this bandwidth is not the memory's alone."),
        "{text}"
    );
}

#[test]
fn a_host_is_said_to_be_no_gpu_and_its_notes_are_told_once() {
    let text = text_of(&draw_first::<Bandwidth>(&[host()]).unwrap());
    assert!(text.contains(words::NOT_A_GPU));
    assert!(text.contains("2 threads"));
    assert!(!text.contains("theoretical"));
    assert_eq!(text.matches("buffers capped").count(), 1);
    assert!(text_of(&draw_first::<Stride>(&[host()]).unwrap()).contains("64-byte cache lines"));
}

#[test]
fn an_unsound_row_is_named_and_not_drawn() {
    let mut run = h200();
    spoil(&mut run, "stream/copy/f32");
    let one = text_of(&draw_first::<Bandwidth>(&[run.clone()]).unwrap());
    assert!(one.contains("Not drawn: stream/copy/f32 (unverified)."), "{one}");
    assert!(!one.contains("4309"));

    let two = text_of(&draw_first::<Bandwidth>(&[h200(), run]).unwrap());
    assert!(two.contains("Not drawn: NVIDIA H200 (2): stream/copy/f32 (unverified)."), "{two}");
    assert!(two.contains("4309"));
}

#[test]
fn an_unsound_stride_interrupts_the_line() {
    let count = |run: &Run| draw_first::<Stride>(std::slice::from_ref(run)).unwrap().matches("<circle").count();
    let mut run = h200_with_every_pattern();
    let before = count(&run);
    spoil(&mut run, "stride/read/32");
    // Two markers, requested and compulsory, of a fill and an edge each.
    assert_eq!(count(&run), before - 4);
}

#[test]
fn marked_rows_are_listed_by_mark_and_their_numbers_stay_in_the_tables() {
    let mut run = h200_with_every_pattern();
    for id in ["stream/read/f32", "stream/copy/f32"] {
        let row = row(&mut run, id);
        row.marks.push(crate::record::Mark::Throttled);
        row.notes.push("throttled: the clocks were held back (SwPowerCap in 2 of 9 readings)".into());
    }
    let text = text_of(&draw_first::<Bandwidth>(&[run]).unwrap());
    assert!(
        text.contains("Throttled, the clocks were held back: stream/read/f32, stream/copy/f32.") && !text.contains("SwPowerCap"),
        "{text}"
    );
}

#[test]
fn absurd_figures_are_named_and_not_drawn() {
    for absurd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e300] {
        let mut run = h200_with_every_pattern();
        run.peaks.memory_gbps[0].value = absurd;
        for id in ["stream/copy/f32", "stride/read/64", "conv3d/direct/f32/1x16"] {
            row(&mut run, id).achieved_gbps = Some(absurd);
        }
        row(&mut run, "conv3d/direct/f32/16x16").compute_utilization = Some(absurd);
        row(&mut run, "stream/read/f32").time_ns.as_mut().unwrap().p25 = absurd;
        row(&mut run, "stream/write/f32").time_ns.as_mut().unwrap().median = absurd;
        let runs = [run];
        let bandwidth = text_of(&draw_first::<Bandwidth>(&runs).unwrap());
        assert!(bandwidth.contains("stream/copy/f32 (contradictory)"), "{bandwidth}");
        assert!(!bandwidth.contains("theoretical peak"));
        assert!(text_of(&draw_first::<Stride>(&runs).unwrap()).contains("stride/read/64 (contradictory)"));
        assert!(text_of(&draw_first::<Conv3d>(&runs).unwrap()).contains("conv3d/direct/f32/16x16 (no usable compute utilization)"));
        assert_all_well_placed(&runs);
    }
}

#[test]
fn differing_suite_versions_are_said_to_differ() {
    let mut other = h200();
    other.suite_version = "2".into();
    let text = text_of(&draw_first::<Bandwidth>(&[h200(), other]).unwrap());
    assert!(text.contains("The suite versions differ"), "{text}");
    assert!(text.contains("(suite version 1)") && text.contains("(suite version 2)"), "{text}");
}

#[test]
fn text_from_outside_cannot_break_the_svg() {
    let mut run = h200();
    run.device.name = "<script>&\"'\u{1}\u{1b}\n".into();
    run.labels.insert("]]>".into(), "</text>".into());
    let svg = draw_first::<Bandwidth>(&[run]).unwrap();
    assert!(!svg.contains("<script") && !svg.contains("</text>; "));
    assert!(svg.chars().all(|c| c == '\n' || !c.is_control()));
    assert_well_placed(&svg);
}

#[test]
fn gpus_and_hosts_have_charts_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = draw_all(&[host(), h200()], dir.path()).unwrap();
    let names: Vec<_> = drawn.files.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "bandwidth.svg",
            "bandwidth.png",
            "bandwidth-host.svg",
            "bandwidth-host.png",
            "stride-host.svg",
            "stride-host.png",
            "conv3d-host.svg",
            "conv3d-host.png",
            "cards.svg",
            "cards.png"
        ]
    );
    assert!(drawn.files.iter().all(|file| file.is_file()));
    let reasons =
        [("stride", "no run has a row of stride at its default size"), ("conv3d", "no run has a row of conv3d at its default size")];
    for (name, why) in reasons {
        assert!(drawn.left_out.contains(&(name.to_owned(), why.to_owned())), "{:?}", drawn.left_out);
    }
    let bandwidth = fs::read_to_string(dir.path().join("bandwidth.svg")).unwrap();
    assert!(bandwidth.contains("NVIDIA H200") && !bandwidth.contains("Xeon"));
}

#[test]
fn a_ninth_run_begins_a_further_chart() {
    let runs: Vec<Run> = (0..9).map(|_| h200()).collect();
    let names: Vec<String> = groups(&runs).into_iter().map(|(suffix, group)| format!("{suffix} {}", group.len())).collect();
    assert_eq!(names, [" 8", "-2 1"]);
}

#[test]
fn without_runs_every_chart_is_left_out_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = draw_all(&[], dir.path()).unwrap();
    assert!(drawn.files.is_empty());
    assert_eq!(drawn.left_out.len(), NAMES.len());
    assert!(drawn.left_out.iter().all(|(_, why)| why.starts_with("no run ")), "{:?}", drawn.left_out);
}

#[test]
fn a_chart_without_a_sound_row_is_left_out_with_the_rows_named() {
    let mut run = h200();
    run.measurements.retain(|row| row.id == "stream/copy/f32");
    spoil(&mut run, "stream/copy/f32");
    assert_eq!(draw_first::<Bandwidth>(&[run]).unwrap_err(), "no row can be drawn: stream/copy/f32 (unverified)");
}

/// How many rectangles of an SVG are filled with `color`.
fn filled(svg: &str, color: &str) -> usize {
    svg.lines().filter(|line| line.starts_with("<rect") && line.contains(&format!("fill=\"{color}\""))).count()
}

#[test]
fn the_card_chart_tells_measured_bars_from_published_ones_without_colour() {
    let svg = draw_first::<Cards>(&[h200()]).unwrap();
    let light = plotters::style::RGBColor(0xcc, 0xe3, 0xf0);
    assert_eq!(theme::tint(theme::PALETTE[0]), light);
    let published = beside::beside(&[&h200()], |_, _| None).iter().filter(|card| card.figures[0].is_some()).count();
    assert!(published >= 3);
    // A published bar is drawn twice, outline and tint; then the measured one, and one in the key.
    assert_eq!((filled(&svg, "#0072B2"), filled(&svg, "#CCE3F0")), (published + 2, published));
    let text = text_of(&svg);
    for part in [
        "HBM, GB/s",
        "GDDR, GB/s",
        "measured by this program",
        "published by others",
        "data-sheet peak",
        "1 run; arrays of 3.75 GiB; driver 580.159.03; ECC on",
        "with other programs and methods",
        "[1] gpu-stream kernel, FP64",
        "(RRZE-HPC/gpu-benches)",
        "no figure of these operations in the catalog",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("Other, GB/s"));
}

#[test]
fn a_card_without_figures_keeps_the_tick_of_its_data_sheet() {
    let svg = draw_first::<Cards>(&[h200()]).unwrap();
    let ticks = svg.lines().filter(|line| line.starts_with("<polyline") && line.contains("stroke-width=\"4\"")).count();
    let cards = beside::beside(&[&h200()], |_, _| None);
    // One in the key, and one in the legend beside each card that has nothing else.
    let alone = cards.iter().filter(|card| card.runs.is_empty() && card.figures.iter().all(Option::is_none)).count();
    assert_eq!((alone, ticks), (1, cards.len() + 1 + alone));
}

#[test]
fn the_card_chart_has_neither_wrong_rows_nor_those_of_a_cache_and_says_so() {
    let mut run = h200();
    spoil(&mut run, "stream/copy/f32");
    row(&mut run, "stream/read/f32").level = Some(Level::Mixed);
    let text = text_of(&draw_first::<Cards>(&[run]).unwrap());
    assert!(text.contains("Not drawn: stream/read/f32 (not at level dram), stream/copy/f32 (unverified)."), "{text}");
    assert!(!text.contains("4712") && !text.contains("4309"), "{text}");
}

#[test]
fn a_card_that_the_catalog_does_not_know_stands_under_other() {
    let text = text_of(&draw_first::<Cards>(&many(1)).unwrap());
    for part in ["Other, GB/s", "NVIDIA RTX 4001 Ti SUPER 32 GB (140 GiB)", "Other: neither HBM nor GDDR"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn without_a_gpu_there_is_no_card_chart() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = draw_all(&[host()], dir.path()).unwrap();
    assert!(drawn.left_out.contains(&("cards".to_owned(), "no run of a GPU was given".to_owned())), "{:?}", drawn.left_out);
}

#[test]
fn many_runs_of_one_card_share_a_chart_and_a_ninth_card_begins_a_further_one() {
    let runs: Vec<Run> = (0..20).map(|_| h200()).chain(many(8)).collect();
    let groups: Vec<String> = groups_of_cards(&runs).into_iter().map(|(suffix, group)| format!("{suffix} {}", group.len())).collect();
    assert_eq!(groups, [" 27", "-2 1"]);
    let chart = Cards::new(&groups_of_cards(&runs[..20])[0].1).unwrap();
    assert!(text_of(&svg(&chart).unwrap()).contains("median of 20 runs"));
}

#[test]
fn the_same_runs_give_the_same_bytes() {
    let mut runs = many(2);
    runs.extend([h200_with_footprints(), h200_with_a_soak()]);
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [a, b] = dirs.each_ref().map(|dir| draw_all(&runs, dir.path()).unwrap().files);
    assert_eq!(a.len(), 2 * NAMES.len());
    for (a, b) in a.iter().zip(&b) {
        assert_eq!(fs::read(a).unwrap(), fs::read(b).unwrap(), "{}", a.display());
    }
}

#[test]
fn a_png_has_the_layout_of_its_svg_at_two_dots_a_unit() {
    let runs = [h200()];
    let chart = Bandwidth::new(&groups(&runs)[0].1).unwrap();
    let (svg, png) = (svg(&chart).unwrap(), png(&chart).unwrap());
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(format!("{}", info.width / 2), attribute(&svg, "width").unwrap());
    assert_eq!(format!("{}", info.height / 2), attribute(&svg, "height").unwrap());
    // The first bar, where the SVG has it.
    let bar = svg.lines().find(|line| line.starts_with("<rect") && line.contains("#0072B2")).unwrap();
    let at = |name: &str| attribute(bar, name).unwrap().parse::<usize>().unwrap();
    let pixel = ((at("y") + at("height") - 5) * 2 * info.width as usize + (at("x") + 5) * 2) * 3;
    assert_eq!(pixels[pixel..pixel + 3], [0x00, 0x72, 0xb2]);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = draw_all(&[h200()], file.path()).unwrap_err().to_string();
    assert!(error.contains(file.path().to_str().unwrap()) && error.contains("choose a folder"), "{error}");
}

#[test]
fn a_tuned_bar_has_a_cut_at_the_naive_bandwidth_and_its_figure_at_the_foot() {
    let cuts = |svg: &str| filled(svg, "#FFFFFF");
    let (plain, tuned) = (draw_first::<Bandwidth>(&[h200()]).unwrap(), draw_first::<Bandwidth>(&[h200_tuned()]).unwrap());
    // Seven operations and one in the key; the copy engine is not tuned.
    assert_eq!(cuts(&tuned) - cuts(&plain), 7 + 1);
    assert_well_placed(&tuned);
    let text = text_of(&tuned);
    for part in ["2428", "3386", "4555", "naive", "the best kernel that a search found", "one element of 8 bytes a thread"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text_of(&plain).contains("naive"));
}

#[test]
fn a_naive_kernel_that_is_as_fast_cuts_nothing_and_one_that_is_not_known_is_named() {
    let cuts = |run: &Run| filled(&draw_first::<Bandwidth>(std::slice::from_ref(run)).unwrap(), "#FFFFFF");
    let mut run = h200_tuned();
    let before = cuts(&run);
    row(&mut run, "stream/dot/f32").tuning.as_mut().unwrap().naive_gbps = Some(4712.0);
    assert_eq!(cuts(&run), before - 1);
    row(&mut run, "stream/dot/f32").tuning.as_mut().unwrap().naive_gbps = None;
    let text = text_of(&draw_first::<Bandwidth>(&[run]).unwrap());
    assert!(text.contains("Not drawn: stream/dot/f32 (no usable naive GB/s)") && text.contains("4712"), "{text}");
}

#[test]
fn seven_operations_of_one_to_eight_tuned_cards_have_their_labels_apart() {
    for n in [1, 3, 8] {
        let runs: Vec<Run> = (0..n).map(|_| h200_tuned()).collect();
        let svg = draw_first::<Bandwidth>(&runs).unwrap();
        assert_well_placed(&svg);
        // Narrow bars have room for one figure each.
        assert_eq!(text_of(&svg).contains("2428"), n < 8);
        assert_well_placed(&draw_first::<InFlight>(&runs).unwrap());
    }
}

#[test]
fn the_in_flight_chart_tells_what_nine_tenths_need_and_what_naive_code_gets() {
    let text = text_of(&draw_first::<InFlight>(&[h200_tuned()]).unwrap());
    for part in [
        "Read, % of the peak",
        "Copy, % of the peak",
        "Triad, % of the peak",
        "Dot, % of the peak",
        "KiB in flight a multiprocessor, log scale",
        "90 % needs 21.5 (read), 17.0 (copy), 22.7 (triad), 23.2 (dot) KiB",
        "naive code 51.8 (read), 89.1 (copy), 97.6 (triad), 96.7 (dot) % of the best",
        "not verified one by one",
        "128",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    // Lines between doublings have no label.
    assert!(!texts(&draw_first::<InFlight>(&[h200_tuned()]).unwrap()).iter().any(|text| text.content == "3" || text.content == "96"));
}

#[test]
fn bytes_in_flight_are_drawn_in_gbps_where_a_peak_is_not_known() {
    let mut unknown = h200_tuned();
    unknown.peaks.memory_gbps.clear();
    let text = text_of(&draw_first::<InFlight>(&[h200_tuned(), unknown]).unwrap());
    assert!(text.contains("Read, GB/s") && !text.contains("% of the peak"), "{text}");
}

#[test]
fn an_unsound_row_has_no_bytes_in_flight_and_absurd_points_are_left_out() {
    let mut run = h200_tuned();
    spoil(&mut run, "stream/copy/f32");
    for absurd in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
        let tuning = row(&mut run, "stream/read/f32").tuning.as_mut().unwrap();
        tuning.ease_kib_per_unit = Some(absurd);
        tuning.in_flight.push(crate::record::InFlight { kib_per_unit: absurd, gbps: 4000.0 });
        tuning.in_flight.push(crate::record::InFlight { kib_per_unit: 64.0, gbps: if absurd == 0.0 { f64::NAN } else { absurd } });
    }
    let svg = draw_first::<InFlight>(&[run]).unwrap();
    assert_well_placed(&svg);
    let text = text_of(&svg);
    assert!(text.contains("stream/copy/f32 (unverified)") && !text.contains("Copy, % of the peak") && !text.contains("(copy)"), "{text}");
    let mut run = h200_tuned();
    run.measurements
        .iter_mut()
        .flat_map(|row| &mut row.tuning)
        .flat_map(|tuning| &mut tuning.in_flight)
        .for_each(|point| point.gbps = -1.0);
    let why = draw_first::<InFlight>(&[run]).err().unwrap();
    assert!(why.contains("stream/read/f32 (no usable bandwidth by bytes in flight)"), "{why}");
    let why = draw_first::<InFlight>(&[h200()]).err().unwrap();
    assert_eq!(why, "no run has a row of stream with bytes in flight at its default size");
}

#[test]
fn the_saturation_chart_names_the_fewest_multiprocessors_with_nine_tenths_of_the_best() {
    let text = text_of(&draw_first::<Saturation>(&[h200_with_every_pattern()]).unwrap());
    assert!(text.contains("with 90 % of the best: NVIDIA H200: 66 of 132 multiprocessors (4210 GB/s)"), "{text}");
}

#[test]
fn the_latency_chart_tells_the_last_cache_and_calls_no_row_a_bandwidth() {
    let text = text_of(&draw_first::<Latency>(&[h200_with_every_pattern()]).unwrap());
    assert!(text.contains("last cache 60 MiB") && text.contains("16 KiB") && !text.contains("this bandwidth"), "{text}");
}

#[test]
fn an_unsound_latency_is_named_and_not_drawn() {
    let mut run = h200_with_every_pattern();
    spoil(&mut run, "latency/loaded/90");
    run.measurements.iter_mut().filter(|row| row.id.starts_with("latency/chase")).for_each(|row| row.latency_ns = None);
    let text = text_of(&draw_first::<LoadedLatency>(std::slice::from_ref(&run)).unwrap());
    assert!(text.contains("Not drawn: latency/loaded/90 (unverified)"), "{text}");
    let why = draw_first::<Latency>(&[run]).unwrap_err();
    assert!(why.contains("latency/chase/16384 (no usable latency)"), "{why}");
}

#[test]
fn the_footprint_chart_names_plateaus_and_both_ends_of_the_cache() {
    let svg = draw_first::<Footprint>(&[h200_with_footprints()]).unwrap();
    assert_well_placed(&svg);
    let text = text_of(&svg);
    for part in [
        "Read, GB/s",
        "Copy, GB/s",
        "footprint, log scale",
        "lines in random order",
        "L2 7000",
        "DRAM 4600",
        "the driver says 60 MiB",
        "64 KiB",
        "64 GiB",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    // Its subject is which footprints the cache serves.
    assert!(!text.contains("the data fit the last cache"), "{text}");
}

#[test]
fn of_several_runs_each_curve_is_read_in_the_caption_and_none_in_the_plot() {
    let svg = draw_first::<Footprint>(&[h200_with_footprints(), h200_with_footprints()]).unwrap();
    assert_well_placed(&svg);
    let text = text_of(&svg);
    assert!(text.contains("NVIDIA H200 (1): Reads by footprint") && text.contains("NVIDIA H200 (2): Reads by footprint"), "{text}");
    assert!(!text.contains("as told"), "{text}");
}

#[test]
fn a_few_footprints_are_drawn_without_plateaus() {
    let mut run = h200();
    run.measurements.extend([1u64 << 20, 1 << 30].map(|bytes| footprint_row("copy", bytes, 4000.0)));
    let text = text_of(&draw_first::<Footprint>(&[run.clone()]).unwrap());
    assert!(text.contains("Copy, GB/s") && !text.contains("Read, GB/s") && !text.contains("random order\n"), "{text}");
    run.measurements.push(footprint_row("read", 1 << 16, 4000.0));
    let svg = draw_first::<Footprint>(&[run]).unwrap();
    assert_well_placed(&svg);
    assert!(text_of(&svg).contains("No plateaus are named: too few footprints"));
}

#[test]
fn a_long_list_of_rows_is_cut_short_with_their_number() {
    let mut run = h200_with_footprints();
    run.measurements.iter_mut().for_each(|row| row.marks.push(crate::record::Mark::Throttled));
    let text = text_of(&draw_first::<Footprint>(&[run]).unwrap());
    assert!(text.contains("and 156 more."), "{text}");
}

#[test]
fn a_soak_shows_bandwidth_clock_and_temperatures_over_one_time_and_says_what_both_ends_were() {
    let svg = draw_first::<SoakChart>(&[h200_with_a_soak()]).unwrap();
    assert_well_placed(&svg);
    let text = text_of(&svg);
    for part in [
        "Clock of the multiprocessors, MHz",
        "temperature of the memory",
        "NVIDIA H200, stream/read/f32: 4610 GB/s in the first ten seconds, 4426 in the last of 600 s (96.00 %); 0.145 J/GB",
        "held back by SwPowerCap in 50.0 % of the readings.",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert_eq!(text.matches("time since the soak began, s").count(), 3);
    // The time axes lie below each other: each tick stands at one place.
    let placed = texts(&svg);
    let ends: Vec<f32> = placed.iter().filter(|text| text.content == "500" && text.left > 500.0).map(|text| text.left).collect();
    assert!(ends.len() == 3 && ends.iter().all(|left| *left == ends[0]), "{ends:?}");
}

#[test]
fn without_sensors_a_soak_shows_its_bandwidth_alone() {
    let mut run = h200_with_a_soak();
    for at in &mut row(&mut run, "stream/read/f32").soak.as_mut().unwrap().intervals {
        (at.sm_clock_mhz, at.temperature_gpu_c, at.temperature_memory_c) = (None, None, None);
    }
    let text = text_of(&draw_first::<SoakChart>(&[run]).unwrap());
    assert_eq!(text.matches("time since the soak began, s").count(), 1);
    assert!(!text.contains("°C") && !text.contains("temperature of"), "{text}");
}

#[test]
fn several_soaks_are_told_apart_and_none_is_left_out_without_a_word() {
    let mut runs = [h200_with_a_soak(), h200_with_a_soak()];
    let soak = row(&mut runs[0], "stream/read/f32").soak.clone();
    runs[1].measurements.iter_mut().for_each(|row| row.soak = soak.clone());
    let svg = draw_first::<SoakChart>(&runs).unwrap();
    assert_well_placed(&svg);
    let text = text_of(&svg);
    assert!(text.contains("NVIDIA H200 (1), stream/read/f32:") && text.contains("NVIDIA H200 (2), stream/copy/f32:"), "{text}");
    assert_eq!(text.contains("for want of colours"), runs[1].measurements.len() > 7);
    assert!(draw_first::<SoakChart>(&[h200()]).is_err_and(|why| why.contains("no run has a row with a soak")));
}
