// Structs that describe a tool's arguments: descriptions, bounds, enums, nested lists, optional
// members. Clients and models see them as JSON Schema. Arguments that do not fit never reach the
// lambda.

#include <optional>
#include <string>
#include <vector>

#include "sluice/server.hpp"

enum class Size { small, medium, large };

struct Item {
  std::string name;
  int count = 1;

  static auto describe() {
    return sluice::describe(sluice::field<&Item::name>("What to order").min_length(1),
                            sluice::field<&Item::count>().minimum(1).maximum(100));
  }
};

struct Order {
  std::vector<Item> items;
  Size size = Size::medium;
  std::optional<std::string> note;

  static auto describe() {
    return sluice::describe("An order", sluice::field<&Order::items>().min_items(1),
                            sluice::field<&Order::note>("For the kitchen").max_length(200));
  }
};

struct Receipt {
  int pieces;
  double price;
};

int main(int count, char** arguments) {
  sluice::Server server("typed-tools", "1.0");
  server.tool("order", "Places an order",
              [](Order in) {
                Receipt receipt{0, 0};
                for (const Item& item : in.items) {
                  // The model reads this, and can correct itself.
                  if (item.name == "unicorn") throw sluice::ToolError("Unicorns are sold out");
                  receipt.pieces += item.count;
                }
                receipt.price = receipt.pieces * (in.size == Size::large ? 3.5 : 2.5);
                return receipt;
              },
              {.title = "Order", .annotations = {.destructive = false}});
  return sluice::serve(server, sluice::command_line{count, arguments});
}
