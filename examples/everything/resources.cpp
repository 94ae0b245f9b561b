#include <string>
#include <vector>

#include "everything.hpp"

namespace everything {
namespace {

struct Id {
  std::string id;
};

}  // namespace

void add_resources(sluice::Server& server) {
  server.resource("test://static-text", "static-text",
                  [] { return std::string("This is the content of the static text resource."); },
                  {.description = "Text", .mime_type = "text/plain"});
  server.resource("test://static-binary", "static-binary",
                  [] {
                    return sluice::ResourceContents{
                        .uri = {}, .data = std::string(png()), .binary = true};
                  },
                  {.description = "An image", .mime_type = "image/png"});
  server.resource("test://watched-resource", "watched-resource",
                  [] { return std::string("This resource is updated now and then."); },
                  {.description = "Text that changes", .mime_type = "text/plain"});
  server.resource_template("test://template/{id}/data", "template",
                           [](Id in) {
                             return R"({"id":")" + in.id +
                                    R"(","templateTest":true,"data":"Data for ID: )" + in.id +
                                    R"("})";
                           },
                           {.description = "Data by id", .mime_type = "application/json"});
  server.skill("acme/refunds", {{"SKILL.md",
                                 "---\nname: refunds\ndescription: How to give refunds\n---\n\nSee "
                                 "references/FORMS.md.\n"},
                                {"references/FORMS.md", "# Forms\n\nForm 12 is the one.\n"}});
  server.completion(
      sluice::TemplateRef{"test://template/{id}/data"}, "id",
      [](const std::string& typed) { return std::vector<std::string>{typed + "1", typed + "2"}; });
}

}  // namespace everything
