"""The server that the public conformance suite is run against, and its tests.

Written on the low-level API alone, one idea a module:

    tools       what a tool of this server is, and how a call finds it
    asking      a question to the client, put as a request or as a result
    media       the smallest image and sound

    content     tools that give each kind of content, and tools with schemas to be listed
    notices     tools that say something before they answer
    forms       tools that ask once
    rounds      tools that are called again with the answers
    prompts     the prompts
    resources   the resources and the template
    completion  what is proposed for their arguments

    server      all of it together, served over HTTP
"""
