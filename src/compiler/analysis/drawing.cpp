// src/compiler/analysis/drawing.cpp: a graph as a picture.
#include "compiler/analysis/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/analysis/schedule_units.h"
#include "compiler/graph/text.h"

namespace graft::compiler {

namespace {

constexpr int kLine = 16, kGap = 40, kLetter = 7, kMargin = 20;

std::string escaped(const std::string& text) {
  static constexpr std::pair<char, const char*> kSigns[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
  std::string result;
  for (char c : text) {
    const auto* sign = std::ranges::find(kSigns, c, &std::pair<char, const char*>::first);
    result += sign == std::end(kSigns) ? std::string(1, c) : sign->second;
  }
  return result;
}

struct Box {
  std::vector<std::string> lines;
  std::string fill = "#ffffff";
  int level = 0, x = 0, y = 0;  // level: rows from the top
  int width() const {
    size_t letters = 8;
    for (const std::string& line : lines) letters = std::max(letters, line.size());
    return static_cast<int>(letters) * kLetter + 16;
  }
  int height() const { return static_cast<int>(lines.size()) * kLine + 8; }
};

class Drawing {
 public:
  Drawing(const Graph& graph, const std::vector<UnitFigures>& figures)
      : graph_(graph), effects_(graph), units_(graph, effects_) {
    for (const UnitFigures& figure : figures) {
      figures_[units_.of(figure.node)] = figure;
      slowest_ = std::max(slowest_, figure.microseconds);
    }
  }

  std::string run() {
    for (ValueId id : graph_.inputs) {
      home_[id] =
          add({{"%" + graph_.values[id].name, print_type(graph_.values[id].type)}, "#e8f0fe"});
    }
    for (UnitId unit : units_.sorted()) add_unit(unit);
    for (const Output& output : graph_.outputs) {
      if (output.value == kNone) continue;
      const size_t box = add({{"output %" + graph_.values[output.value].name}, "#e6f4ea"});
      connect(output.value, box);
    }
    place();
    return text();
  }

 private:
  size_t add(Box box) {
    boxes_.push_back(std::move(box));
    return boxes_.size() - 1;
  }

  void connect(ValueId value, size_t box) {
    const auto found = home_.find(value);
    if (found == home_.end() || found->second == box) return;
    edges_.emplace(found->second, box);
    boxes_[box].level = std::max(boxes_[box].level, boxes_[found->second].level + 1);
  }

  void add_unit(UnitId unit) {
    Box box;
    const std::vector<NodeId>& nodes = units_.nodes(unit);
    if (unit < graph_.groups.size()) {
      const Group& group = graph_.groups[unit];
      box.lines.push_back(fmt::format("{}: {}", group.name, name_of(group.kind)));
      box.fill = "#fef7e0";
    }
    for (NodeId id : nodes) box.lines.push_back(graph_.describe(id));
    const auto figure = figures_.find(unit);
    if (figure != figures_.end()) {
      const double share = slowest_ > 0 ? figure->second.microseconds / slowest_ : 0;
      box.lines.push_back(
          fmt::format("{:.1f} us, {} bytes", figure->second.microseconds, figure->second.bytes));
      const int level = 255 - static_cast<int>(110 * share);
      box.fill = fmt::format("#ff{:02x}{:02x}", level, level);
    }
    const size_t index = add(std::move(box));
    for (NodeId id : nodes) {
      for (ValueId result : graph_.nodes[id].results) {
        if (result != kNone) home_[result] = index;
      }
      each_value(graph_.nodes[id].arguments, [&](ValueId value) { connect(value, index); });
    }
  }

  void place() {
    std::map<int, std::vector<size_t>> rows;
    for (size_t i = 0; i < boxes_.size(); ++i) rows[boxes_[i].level].push_back(i);
    int y = kMargin;
    for (const auto& [level, row] : rows) {
      int x = kMargin, height = 0;
      for (size_t i : row) {
        boxes_[i].x = x;
        boxes_[i].y = y;
        x += boxes_[i].width() + kGap / 2;
        height = std::max(height, boxes_[i].height());
      }
      width_ = std::max(width_, x + kMargin);
      y += height + kGap;
    }
    height_ = y;
  }

  std::string text() const {
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
        "font-family=\"monospace\" font-size=\"11\">\n<title>{}</title>\n",
        width_, height_, escaped(graph_.name));
    for (const auto& [from, to] : edges_) {
      const Box &a = boxes_[from], &b = boxes_[to];
      svg += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#888888\"/>\n",
                         a.x + a.width() / 2, a.y + a.height(), b.x + b.width() / 2, b.y);
    }
    for (const Box& box : boxes_) {
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" "
          "stroke=\"#444444\"/>\n",
          box.x, box.y, box.width(), box.height(), box.fill);
      for (size_t i = 0; i < box.lines.size(); ++i) {
        svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", box.x + 8,
                           box.y + kLine * (static_cast<int>(i) + 1), escaped(box.lines[i]));
      }
    }
    return svg + "</svg>\n";
  }

  const Graph& graph_;
  const Effects effects_;
  const ScheduleUnits units_;
  std::map<UnitId, UnitFigures> figures_;
  double slowest_ = 0;
  std::vector<Box> boxes_;
  std::map<ValueId, size_t> home_;
  std::set<std::pair<size_t, size_t>> edges_;
  int width_ = 0, height_ = 0;
};

}  // namespace

std::string draw(const Graph& graph, const std::vector<UnitFigures>& figures) {
  return Drawing(graph, figures).run();
}

}  // namespace graft::compiler
