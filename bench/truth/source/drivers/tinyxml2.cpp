// Reads a file of XML, prints it in two forms, and changes it.
#include <cstdio>
#include "tinyxml2.h"
using namespace tinyxml2;

static int count(const XMLElement *e)
{
    int n = 1;
    for (const XMLAttribute *a = e->FirstAttribute(); a; a = a->Next())
        n += a->IntValue();
    for (const XMLElement *c = e->FirstChildElement(); c; c = c->NextSiblingElement())
        n += count(c);
    return n;
}

int main(int argc, char **argv)
{
    XMLDocument doc, copy;
    if (doc.LoadFile(argv[argc - 1]) != XML_SUCCESS) {
        printf("%s\n", doc.ErrorName());
        return 0;
    }
    XMLPrinter wide, compact(0, true);
    doc.Print(&wide);
    printf("%s", wide.CStr());
    doc.DeepCopy(&copy);
    XMLElement *root = copy.RootElement();
    if (root) {
        printf("%d\n", count(root));
        XMLElement *added = copy.NewElement("added");
        added->SetAttribute("text", "a \"quoted\" <text>");
        added->SetAttribute("number", 12.5);
        added->SetText("inner & outer");
        root->InsertFirstChild(added);
        if (root->LastChild() != added)
            root->DeleteChild(root->LastChild());
        added->DeleteAttribute("number");
    }
    copy.Print(&compact);
    printf("%s\n", compact.CStr());
    return 0;
}
